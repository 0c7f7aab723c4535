#pragma once
// WordPiece as BERT uses it (Devlin et al. 2019; Wu et al. 2016): from the left always the longest piece that the
// vocabulary has, where pieces inside a word are spelled with a prefix ("##ing"). A word that cannot be covered so, or
// that is too long, is one unknown token. Without pieces inside words it is a vocabulary of whole words ("WordLevel").

#include <string>
#include <utility>

#include "core/text/byte_trie.h"
#include "core/text/word_model.h"

namespace headscope {

class WordPieceModel final : public WordModel {
 public:
  struct Options {
    std::optional<std::int32_t> unk = std::nullopt;
    std::string prefix = "##";  ///< of pieces inside a word
    std::size_t most_characters = 100;
    bool whole_words = false;  ///< a word is one token or unknown
  };
  WordPieceModel(const std::vector<std::pair<std::string, std::int32_t>>& words, Options options);
  void encode(std::string_view word, std::vector<Piece>& out, const std::stop_token& stop = {}) const override;
  std::size_t longest_piece() const override { return 0; }

 private:
  ByteTrie beginnings_, insides_;  // insides without their prefix
  Options options_;
};

}  // namespace headscope
