#pragma once
// Search as palettes do it: by words, and fuzzily by the letters of the query in their order, anywhere; word starts and
// runs score best.

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

/// How well the words of `query` name what has this title and these other words: 0 where one of them begins no word of
/// either; 1 where all are whole words of the title, less for words that are begun and for those of `others` alone, and
/// up to 0.5 more where they stand in the title as in the query. Case, hyphens, dots and a last s apart.
double word_match(std::string_view query, std::string_view title, std::string_view others);

}  // namespace headscope
