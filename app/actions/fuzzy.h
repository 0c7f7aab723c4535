#pragma once
// Fuzzy search as palettes do it: the letters of the query in their order, anywhere; word starts and runs score best.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace headscope {

struct FuzzyMatch {
  double score = 0;                    ///< larger is better
  std::vector<std::size_t> positions;  ///< bytes of the text that the query's letters fell on, ascending
};

/// The best way in which the letters of `query` (spaces apart, ASCII case apart) occur in `text` in order; nullopt when
/// they do not. An empty query matches everything with score 0. Looks at the first 64 letters and 512 bytes.
std::optional<FuzzyMatch> fuzzy_match(std::string_view query, std::string_view text);

}  // namespace headscope
