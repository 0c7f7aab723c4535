#pragma once
// Byte pair encoding of one word: its smallest symbols, merged pair by pair, lowest rank first and leftmost first
// (Sennrich et al. 2016; byte-level variant: Radford et al. 2019). A queue of candidate merges over a linked list keeps
// it at O(n log n), so one word of a hundred thousand letters is no trouble.

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/text/vocabulary.h"
#include "core/text/word_model.h"

namespace headscope {

class BpeModel final : public WordModel {
 public:
  struct Merge {
    std::int32_t left = 0, right = 0, result = 0;  ///< ids; the rank is the index
  };
  struct Options {
    bool byte_level = false;     ///< the smallest symbols are bytes, otherwise characters
    bool ignore_merges = false;  ///< a word that is a token as a whole is not split at all (Llama 3)
    bool fuse_unk = false;       ///< neighbouring unknown characters make one unknown token
    std::optional<std::int32_t> unk = std::nullopt;
    /// Tokens for single bytes (<0x00>…<0xFF>), used for characters that have no token of their own; −1 where absent.
    std::optional<std::array<std::int32_t, 256>> byte_fallback = std::nullopt;
  };

  /// `words` are the tokens that text can become: their bytes and ids.
  BpeModel(std::vector<std::pair<std::string, std::int32_t>> words, std::vector<Merge> merges, Options options);

  void encode(std::string_view word, std::vector<Piece>& out, const std::stop_token& stop = {}) const override;
  std::size_t longest_piece() const override { return longest_; }
  std::size_t merge_count() const { return merges_.size(); }

 private:
  std::vector<Piece> symbols(std::string_view word) const;
  void merge(std::vector<Piece>& pieces, const std::stop_token& stop) const;
  /// Rank of the merge of two ids, or −1.
  std::int32_t rank(std::int32_t left, std::int32_t right) const;

  struct PairHash {
    std::size_t operator()(std::uint64_t pair) const {
      pair *= 0x9E3779B97F4A7C15ull;
      return static_cast<std::size_t>(pair ^ (pair >> 32));
    }
  };
  struct WordHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
  };
  std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>> words_;
  std::vector<Merge> merges_;
  std::unordered_map<std::uint64_t, std::int32_t, PairHash> ranks_;
  std::array<std::int32_t, 256> byte_ids_{};
  Options options_;
  std::size_t longest_ = 0;
};

/// From tokens as files spell them: in GPT-2's byte alphabet where the model is of bytes.
std::unique_ptr<const BpeModel> make_bpe(const std::vector<Vocabulary::Entry>& words,
                                         std::vector<BpeModel::Merge> merges, BpeModel::Options options);

/// The merge of two spelled tokens. Throws Error (naming `where`) when one of the three tokens is not in the
/// vocabulary.
BpeModel::Merge merge_of(const Vocabulary& vocabulary, const std::string& left, const std::string& right,
                         const std::string& where);

}  // namespace headscope
