#include "core/text/word_piece.h"

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {

bool has_more_characters(std::string_view word, std::size_t most) {
  std::size_t characters = 0;
  for (const char byte : word)
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80 && ++characters > most) return true;
  return false;
}

}  // namespace

WordPieceModel::WordPieceModel(const std::vector<std::pair<std::string, std::int32_t>>& words, Options options)
    : options_(std::move(options)) {
  for (const auto& [spelling, id] : words) {
    beginnings_.add(spelling, id);
    if (spelling.starts_with(options_.prefix))
      insides_.add(std::string_view(spelling).substr(options_.prefix.size()), id);
  }
}

void WordPieceModel::encode(std::string_view word, std::vector<Piece>& out, const std::stop_token& stop) const {
  const std::size_t before = out.size();
  const auto size = static_cast<std::uint32_t>(word.size());
  bool covered = options_.whole_words || !has_more_characters(word, options_.most_characters);
  std::size_t steps = 0;
  for (std::uint32_t begin = 0; covered && begin < size;) {
    const ByteTrie& trie = begin == 0 ? beginnings_ : insides_;
    Piece piece{-1, begin, begin};
    std::int32_t node = ByteTrie::root;
    for (std::uint32_t at = begin; at < size; ++at) {
      if (++steps % WordModel::steps_between_looks == 0 && stop.stop_requested()) throw Cancelled();
      node = trie.next(node, word[at]);
      if (node == ByteTrie::none) break;
      if (const std::int32_t id = trie.value(node); id != ByteTrie::none) piece = {id, begin, at + 1};
    }
    covered = piece.id >= 0 && (!options_.whole_words || piece.end == size);
    out.push_back(piece);
    begin = piece.end;
  }
  if (covered) return;
  out.resize(before);
  out.push_back({options_.unk.value_or(-1), 0, size});
}

}  // namespace headscope
