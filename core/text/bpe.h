#pragma once
// Byte pair encoding of one word: its smallest symbols, merged pair by pair, lowest rank first and leftmost first
// (Sennrich et al. 2016; byte-level variant: Radford et al. 2019). A queue of candidate merges over a linked list keeps
// it at O(n log n), so one word of a hundred thousand letters is no trouble.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headscope {

class BpeModel {
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
  /// One token of a word; id −1 stands for a character (or byte) that nothing in the vocabulary can express.
  struct Piece {
    std::int32_t id = -1;
    std::uint32_t begin = 0, end = 0;  ///< bytes of the word
  };

  /// `words` are the tokens that text can become: their bytes and ids.
  BpeModel(std::vector<std::pair<std::string, std::int32_t>> words, std::vector<Merge> merges, Options options);

  /// Appends the pieces of `word` (valid UTF-8 unless byte_level) to `out`; they cover it without gaps. Thread-safe.
  /// Throws Cancelled when `stop` is requested (a word may be millions of letters long).
  void encode(std::string_view word, std::vector<Piece>& out, const std::stop_token& stop = {}) const;
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
};

}  // namespace headscope
