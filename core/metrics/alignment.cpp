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

AlignedPairs strongest_words(const AttentionMap& map, std::span<const std::vector<Index>> target_rows,
                             std::span<const std::vector<Index>> source_keys) {
  AlignedPairs pairs;
  for (std::size_t target = 0; target < target_rows.size(); ++target) {
    double most = 0;
    int best = -1;
    for (std::size_t source = 0; source < source_keys.size(); ++source) {
      double weight = 0;  // every source word's sum is over the same rows, so that their number does not matter
      for (const Index row : target_rows[target])
        for (const Index key : source_keys[source]) weight += static_cast<double>(map.weight(row, key));
      if (weight > most) most = weight, best = static_cast<int>(source);
    }
    if (best >= 0) pairs.insert({best, static_cast<int>(target)});
  }
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

AlignmentCounts& AlignmentCounts::operator+=(const AlignmentCounts& other) {
  found += other.found;
  sure += other.sure;
  found_sure += other.found_sure;
  found_possible += other.found_possible;
  return *this;
}

AlignmentScore AlignmentCounts::score() const {
  const auto share = [](double part, double whole) {
    return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
  };
  return {1 - share(found_sure + found_possible, found + sure), share(found_possible, found), share(found_sure, sure)};
}

AlignmentCounts count_pairs(const AlignedPairs& found, const KnownAlignment& known) {
  const auto shared = [&](const AlignedPairs& with) {
    return static_cast<double>(std::ranges::count_if(found, [&](const AlignedPair& p) { return with.contains(p); }));
  };
  return {static_cast<double>(found.size()), static_cast<double>(known.sure.size()), shared(known.sure),
          shared(known.possible)};
}

AlignmentCounts chance_pairs(int sources, int targets, const KnownAlignment& known) {
  const auto expected = [&](const AlignedPairs& of) { return static_cast<double>(of.size()) / sources; };
  return {static_cast<double>(targets), static_cast<double>(known.sure.size()), expected(known.sure),
          expected(known.possible)};
}

AlignmentScore score_alignment(const AlignedPairs& found, const KnownAlignment& known) {
  return count_pairs(found, known).score();
}

}  // namespace headscope
