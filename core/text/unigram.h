#pragma once
// Unigram (Kudo 2018): of all ways to cut a word into pieces of the vocabulary the one whose scores (log-probabilities)
// sum up highest, by Viterbi's algorithm. A character that no piece begins with alone is unknown, at ten less than the
// least score; neighbouring unknown characters are one piece, or their bytes where the vocabulary has those.

#include <array>
#include <string>

#include "core/text/byte_trie.h"
#include "core/text/word_model.h"

namespace headscope {

class UnigramModel final : public WordModel {
 public:
  struct Entry {
    std::string piece;
    double score = 0;
  };
  struct Options {
    std::optional<std::int32_t> unk = std::nullopt;
    /// Ids of <0x00>…<0xFF>; −1 where absent.
    std::optional<std::array<std::int32_t, 256>> byte_fallback = std::nullopt;
  };
  /// `entries` by id. Of two that are spelled the same the later one is meant.
  UnigramModel(const std::vector<Entry>& entries, Options options);
  void encode(std::string_view word, std::vector<Piece>& out, const std::stop_token& stop = {}) const override;
  std::size_t longest_piece() const override { return longest_; }

 private:
  void append_unknown(std::string_view word, Piece unknown, std::vector<Piece>& out) const;

  ByteTrie trie_;
  std::vector<double> scores_;  // by id
  Options options_;
  double unknown_score_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace headscope
