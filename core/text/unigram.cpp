#include "core/text/unigram.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {

constexpr double kUnknownPenalty = 10;  // SentencePiece's kUnkPenalty

}  // namespace

UnigramModel::UnigramModel(const std::vector<Entry>& entries, Options options) : options_(options) {
  double least = 0;
  longest_ = 4;  // an unknown character
  scores_.reserve(entries.size());
  for (const Entry& entry : entries) {
    trie_.add(entry.piece, static_cast<std::int32_t>(scores_.size()));
    least = scores_.empty() ? entry.score : std::min(least, entry.score);
    longest_ = std::max(longest_, entry.piece.size());
    scores_.push_back(entry.score);
  }
  unknown_score_ = least - kUnknownPenalty;
  const auto& bytes = options_.byte_fallback;
  if (!bytes || std::ranges::any_of(*bytes, [](std::int32_t id) { return id < 0; })) longest_ = 0;
}

void UnigramModel::encode(std::string_view word, std::vector<Piece>& out, const std::stop_token& stop) const {
  struct Best {
    double score = 0;
    std::uint32_t begin = 0;
    std::int32_t id = ByteTrie::none;
    bool reached = false;
  };
  const std::int32_t unknown = options_.unk.value_or(-1);
  std::vector<Best> ends(word.size() + 1);  // the best way to each end
  std::size_t steps = 0;
  for (std::size_t begin = 0; begin < word.size();) {
    const auto character = static_cast<std::size_t>(utf8_length(word[begin]));
    bool alone = false;
    const auto offer = [&](std::size_t end, std::int32_t id, double score) {
      Best& best = nth(ends, end);
      if (best.reached && score <= best.score) return;
      best = {score, static_cast<std::uint32_t>(begin), id, true};
    };
    const double before = ends[begin].score;
    std::int32_t node = ByteTrie::root;
    for (std::size_t at = begin; at < word.size(); ++at) {
      if (++steps % WordModel::steps_between_looks == 0 && stop.stop_requested()) throw Cancelled();
      node = trie_.next(node, word[at]);
      if (node == ByteTrie::none) break;
      const std::int32_t id = trie_.value(node);
      if (id == ByteTrie::none) continue;
      offer(at + 1, id, before + nth(scores_, id));
      alone = alone || at + 1 - begin == character;
    }
    if (!alone) offer(begin + character, unknown, before + unknown_score_);
    begin += character;
  }
  std::vector<Piece> backwards;
  for (std::size_t end = word.size(); end > 0;) {
    const Best& best = ends[end];
    const bool joins = best.id == unknown && !backwards.empty() && backwards.back().id == unknown;
    if (joins)
      backwards.back().begin = best.begin;
    else
      backwards.push_back({best.id, best.begin, static_cast<std::uint32_t>(end)});
    end = best.begin;
  }
  for (auto piece = backwards.rbegin(); piece != backwards.rend(); ++piece) {
    if (piece->id == unknown)
      append_unknown(word, *piece, out);
    else
      out.push_back(*piece);
  }
}

void UnigramModel::append_unknown(std::string_view word, Piece unknown, std::vector<Piece>& out) const {
  const std::string_view bytes = word.substr(unknown.begin, unknown.end - unknown.begin);
  std::int32_t node = ByteTrie::root;
  for (std::size_t at = 0; node != ByteTrie::none && at < bytes.size(); ++at) node = trie_.next(node, bytes[at]);
  if (node != ByteTrie::none && trie_.value(node) != ByteTrie::none) {  // "<unk>" written out
    out.push_back({trie_.value(node), unknown.begin, unknown.end});
    return;
  }
  const auto id_of = [&](char byte) { return (*options_.byte_fallback)[static_cast<unsigned char>(byte)]; };
  if (!options_.byte_fallback || std::ranges::any_of(bytes, [&](char byte) { return id_of(byte) < 0; })) {
    out.push_back(unknown);
    return;
  }
  for (std::uint32_t at = unknown.begin; at < unknown.end; ++at) out.push_back({id_of(word[at]), at, at + 1});
}

}  // namespace headscope
