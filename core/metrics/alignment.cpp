#include "core/metrics/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"

namespace headscope {

AlignedPairs strongest_pairs(const AttentionMap& map) {
  AlignedPairs pairs;
  for (Index query = 0; query < map.n_query(); ++query)
    if (const std::int32_t key = nth(map.stats().max_key, query); key >= 0)
      pairs.insert({key, static_cast<int>(query)});
  return pairs;
}

AlignedPairs pairs_above(const AttentionMap& map, double threshold) {
  AlignedPairs pairs;
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  for (Index query = 0; query < map.n_query(); ++query) {
    map.row(query, row);
    for (std::size_t key = 0; key < row.size(); ++key)
      if (static_cast<double>(row[key]) >= threshold) pairs.insert({static_cast<int>(key), static_cast<int>(query)});
  }
  return pairs;
}

KnownAlignment parse_alignment(std::string_view text, int sources, int targets, const std::string& where) {
  KnownAlignment known;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    text.remove_prefix(end);
    AlignedPair pair;
    const char* const last = word.data() + word.size();
    const auto [mark, first_failed] = std::from_chars(word.data(), last, pair.source);
    const bool marked = first_failed == std::errc() && mark != last && (*mark == '-' || *mark == '?');
    const auto [rest, second_failed] = marked ? std::from_chars(mark + 1, last, pair.target)
                                              : std::from_chars_result{last, std::errc::invalid_argument};
    if (second_failed != std::errc() || rest != last)
      throw Error(where, "pairs of positions, source-target, such as \"0-1 2?0\"", fmt::format("\"{}\"", word));
    if (pair.source < 0 || pair.source >= sources || pair.target < 0 || pair.target >= targets)
      throw Error(where, fmt::format("a source position below {} and a target position below {}", sources, targets),
                  fmt::format("\"{}\"", word));
    known.possible.insert(pair);
    if (*mark == '-') known.sure.insert(pair);
  }
  return known;
}

AlignmentScore score_alignment(const AlignedPairs& found, const KnownAlignment& known) {
  const auto shared = [&](const AlignedPairs& with) {
    return static_cast<double>(std::ranges::count_if(found, [&](const AlignedPair& p) { return with.contains(p); }));
  };
  const auto share = [](double part, double whole) {
    return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
  };
  const double sure = shared(known.sure), possible = shared(known.possible), all = static_cast<double>(found.size()),
               truth = static_cast<double>(known.sure.size());
  return {1 - share(sure + possible, all + truth), share(possible, all), share(sure, truth)};
}

}  // namespace headscope
