#pragma once
// For every token: which earlier positions hold the same token (duplicate), and which positions follow those
// (induction, "prefix matching": Olsson et al., In-context Learning and Induction Heads, 2022). Rows of attention are
// summed over these links inside the softmax pass.

#include <cstdint>
#include <span>
#include <vector>

namespace headscope {

struct TokenLinks {
  /// links of row i are [begin[i], begin[i+1]) in keys; keys ascend. Rows without links have none.
  struct List {
    std::vector<std::int32_t> begin{0}, keys;
    int rows() const { return static_cast<int>(begin.size()) - 1; }
    std::span<const std::int32_t> row(int i) const {
      return std::span(keys).subspan(static_cast<std::size_t>(begin[static_cast<std::size_t>(i)]),
                                     static_cast<std::size_t>(begin[static_cast<std::size_t>(i) + 1] - begin[static_cast<std::size_t>(i)]));
    }
  };
  List duplicate;  ///< keys j < i with token[j] == token[i]
  List induction;  ///< keys j + 1 ≤ i with token[j] == token[i], j < i

  static TokenLinks of(std::span<const std::int32_t> tokens);
};

}  // namespace headscope
