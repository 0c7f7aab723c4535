#pragma once
// For every token: which earlier positions hold the same token (duplicate), and which positions follow those
// (induction, "prefix matching": Olsson et al., In-context Learning and Induction Heads, 2022). Rows of attention are
// summed over these links inside the softmax pass.

#include <cstdint>
#include <span>
#include <vector>

namespace headscope {

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

  /// Linear in the number of tokens, in time and in memory.
  static TokenLinks of(std::span<const std::int32_t> tokens);
};

}  // namespace headscope
