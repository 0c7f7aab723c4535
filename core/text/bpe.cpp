#include "core/text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nth.h"
#include "core/base/utf8.h"
#include "core/text/byte_alphabet.h"

namespace headscope {

namespace {

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
}

}  // namespace

BpeModel::BpeModel(std::vector<std::pair<std::string, std::int32_t>> words, std::vector<Merge> merges, Options options)
    : merges_(std::move(merges)), options_(options) {
  words_.reserve(words.size());
  longest_ = 4;  // an unknown character
  for (auto& [bytes, id] : words) {
    longest_ = std::max(longest_, bytes.size());
    words_.emplace(std::move(bytes), id);
  }
  const auto& fallback = options_.byte_fallback;
  const bool all_bytes = fallback && std::ranges::none_of(*fallback, [](std::int32_t id) { return id < 0; });
  if (options_.fuse_unk && options_.unk && !all_bytes) longest_ = 0;
  ranks_.reserve(merges_.size());
  // A pair that is listed twice has the rank of its last line, as in the reference implementations.
  for (std::size_t i = 0; i < merges_.size(); ++i)
    ranks_[pair_key(merges_[i].left, merges_[i].right)] = static_cast<std::int32_t>(i);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto found = words_.find(std::string(1, static_cast<char>(byte)));
    byte_ids_[byte] = found == words_.end() ? -1 : found->second;
  }
}

std::int32_t BpeModel::rank(std::int32_t left, std::int32_t right) const {
  if (left < 0 || right < 0) return -1;
  const auto found = ranks_.find(pair_key(left, right));
  return found == ranks_.end() ? -1 : found->second;
}

std::vector<BpeModel::Piece> BpeModel::symbols(std::string_view word) const {
  std::vector<Piece> pieces;
  pieces.reserve(word.size());
  for (std::size_t at = 0; at < word.size();) {
    const auto length = options_.byte_level ? std::size_t{1} : static_cast<std::size_t>(utf8_length(word[at]));
    const auto begin = static_cast<std::uint32_t>(at), end = static_cast<std::uint32_t>(at + length);
    std::int32_t id = -1;
    if (length == 1) {
      id = byte_ids_[static_cast<unsigned char>(word[at])];
    } else if (const auto found = words_.find(word.substr(at, length)); found != words_.end()) {
      id = found->second;
    }
    at += length;
    if (id < 0 && options_.byte_fallback) {
      bool complete = true;
      for (std::uint32_t k = begin; k < end; ++k)
        complete = complete && (*options_.byte_fallback)[static_cast<unsigned char>(word[k])] >= 0;
      if (complete) {
        for (std::uint32_t k = begin; k < end; ++k)
          pieces.push_back({(*options_.byte_fallback)[static_cast<unsigned char>(word[k])], k, k + 1});
        continue;
      }
    }
    if (id < 0 && options_.unk) {
      id = *options_.unk;
      if (options_.fuse_unk && !pieces.empty() && pieces.back().id == id) {
        pieces.back().end = end;
        continue;
      }
    }
    pieces.push_back({id, begin, end});
  }
  return pieces;
}

void BpeModel::merge(std::vector<Piece>& pieces, const std::stop_token& stop) const {
  if (pieces.size() < 2) return;
  struct Candidate {
    std::int32_t rank;
    std::int32_t at;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  // A doubly linked list in two arrays: merged-away pieces drop out, positions keep their order.
  const auto count = static_cast<std::int32_t>(pieces.size());
  std::vector<std::int32_t> next(pieces.size()), previous(pieces.size());
  std::vector<Candidate> start;
  start.reserve(pieces.size());
  const auto piece = [&](std::int32_t at) -> Piece& { return nth(pieces, at); };
  const auto next_of = [&](std::int32_t at) -> std::int32_t& { return nth(next, at); };
  const auto previous_of = [&](std::int32_t at) -> std::int32_t& { return nth(previous, at); };
  for (std::int32_t i = 0; i < count; ++i) {
    next_of(i) = i + 1 < count ? i + 1 : -1;
    previous_of(i) = i - 1;
    if (i + 1 < count)
      if (const auto r = rank(piece(i).id, piece(i + 1).id); r >= 0) start.push_back({r, i});
  }
  std::priority_queue queue(std::greater<Candidate>{}, std::move(start));
  constexpr unsigned between_looks = 1 << 14;
  for (unsigned count_down = between_looks; !queue.empty(); --count_down) {
    if (count_down == 0) {
      if (stop.stop_requested()) throw Cancelled();
      count_down = between_looks;
    }
    const Candidate best = queue.top();
    queue.pop();
    const std::int32_t left = best.at, right = next_of(left);
    const Merge& merge = nth(merges_, best.rank);
    // Stale when one of the two has meanwhile become part of something else.
    if (right < 0 || piece(left).id != merge.left || piece(right).id != merge.right) continue;
    piece(left).id = merge.result;
    piece(left).end = piece(right).end;
    piece(right).id = -1;
    piece(right).begin = piece(right).end;  // marks it as gone
    const std::int32_t after = next_of(right), before = previous_of(left);
    next_of(left) = after;
    next_of(right) = -1;
    if (after >= 0) {
      previous_of(after) = left;
      if (const auto r = rank(merge.result, piece(after).id); r >= 0) queue.push({r, left});
    }
    if (before >= 0)
      if (const auto r = rank(piece(before).id, merge.result); r >= 0) queue.push({r, before});
  }
  std::erase_if(pieces, [](const Piece& p) { return p.begin == p.end; });
}

void BpeModel::encode(std::string_view word, std::vector<Piece>& out, const std::stop_token& stop) const {
  if (word.empty()) return;
  if (options_.ignore_merges)
    if (const auto whole = words_.find(word); whole != words_.end()) {
      out.push_back({whole->second, 0, static_cast<std::uint32_t>(word.size())});
      return;
    }
  std::vector<Piece> pieces = symbols(word);
  merge(pieces, stop);
  out.insert(out.end(), pieces.begin(), pieces.end());
}

std::unique_ptr<const BpeModel> make_bpe(const std::vector<Vocabulary::Entry>& words,
                                         std::vector<BpeModel::Merge> merges, BpeModel::Options options) {
  std::vector<std::pair<std::string, std::int32_t>> meant;
  meant.reserve(words.size());
  for (const Vocabulary::Entry& word : words) {
    const auto id = static_cast<std::int32_t>(word.id);
    if (!options.byte_level)
      meant.emplace_back(word.spelling, id);
    else if (auto bytes = bytes_from_alphabet(word.spelling))  // what is not in the alphabet cannot come from text
      meant.emplace_back(*std::move(bytes), id);
  }
  return std::make_unique<BpeModel>(std::move(meant), std::move(merges), options);
}

BpeModel::Merge merge_of(const Vocabulary& vocabulary, const std::string& left, const std::string& right,
                         const std::string& where) {
  const auto id = [&](const std::string& spelling) {
    if (const auto found = vocabulary.find(spelling)) return *found;
    throw Error(
        where, "a merge of two tokens into a third, all in the vocabulary",
        fmt::format("'{}' + '{}', and no token '{}'", excerpt(left, 50), excerpt(right, 50), excerpt(spelling, 50)));
  };
  return {id(left), id(right), id(left + right)};
}

}  // namespace headscope
