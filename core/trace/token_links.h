#pragma once
// What of a text heads are known to look for. For every token: which earlier positions hold the same token (duplicate),
// and which positions follow those (induction, "prefix matching": Olsson et al., In-context Learning and Induction
// Heads, 2022); rows of attention are summed over these links inside the softmax pass. For the whole text: where its
// separators and its punctuation stand (Clark et al., What Does BERT Look At?, 2019).

#include <cstdint>
#include <span>
#include <vector>

namespace headscope {

struct Token;

/// [SEP], </s>, <|endoftext|> …: a special token, told by its name, that ends a text or parts two.
bool is_separator(const Token& token);
/// Punctuation and nothing else, the space before it apart.
bool is_punctuation(const Token& token);

struct TokenLinks {
  /// The linked keys of every row, ascending. Rows of one token share one list, of which each sees a beginning, so that
  /// the memory is linear in the text even when a single token repeats all through it.
  struct List {
    std::vector<std::int32_t> keys;          ///< the lists of all tokens, one after another
    std::vector<std::int32_t> begin, count;  ///< row i has keys[begin[i]] … keys[begin[i] + count[i] − 1]
    int rows() const { return static_cast<int>(begin.size()); }
    std::span<const std::int32_t> row(int i) const {
      const auto at = static_cast<std::size_t>(i);
      return std::span(keys).subspan(static_cast<std::size_t>(begin[at]), static_cast<std::size_t>(count[at]));
    }
  };
  List duplicate;  ///< keys j < i with token[j] == token[i]
  List induction;  ///< keys j + 1 ≤ i with token[j] == token[i], j < i

  std::vector<std::int32_t> separators, punctuation;  ///< positions, ascending

  /// Linear in the number of tokens, in time and in memory.
  static TokenLinks of(std::span<const Token> tokens);
  /// Of numbers alone, which do not say what is a separator or punctuation.
  static TokenLinks of(std::span<const std::int32_t> tokens);
};

}  // namespace headscope
