#include "core/metrics/text_metrics.h"

#include <algorithm>
#include <utility>

#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/metrics/even_head.h"
#include "core/metrics/mass.h"

namespace headscope {

namespace {

/// Those of some positions of a text, ascending, that are keys of the map.
std::span<const std::int32_t> keys_among(const MetricInput& in, const std::vector<std::int32_t>& positions) {
  return std::span(positions.begin(), std::ranges::lower_bound(positions, in.map.n_key()));
}

/// The share of weight on some keys. Rows that see none of them have none there.
double mass_on(const MetricInput& in, std::span<const std::int32_t> keys) {
  double sum = 0;
  for (const std::int32_t key : keys) sum += nth(column_mass(in.map), key);
  Index rows = 0;
  for (Index query = 0; query < in.map.n_query(); ++query) {
    const KeyRange seen = visible_range(in.map, query);
    const auto first = std::ranges::lower_bound(keys, seen.begin);
    rows += std::any_of(first, std::lower_bound(first, keys.end(), seen.end),
                        [&](Index key) { return !in.map.masked(query, key); });
  }
  return rows > 0 ? sum / static_cast<double>(rows) : nan;
}

KeysOfRow cells_on(std::span<const std::int32_t> positions) {
  return [positions](Index, std::vector<Index>& keys) { keys.insert(keys.end(), positions.begin(), positions.end()); };
}

/// Mean, over the queries that see any of their cells, of the weight on these.
double mean_on_cells(const MetricInput& in, const KeysOfRow& cells) {
  double sum = 0;
  Index rows = 0;
  read_cells(in.map, cells, [&](Index, std::span<const Index>, std::span<const float> weights) {
    ++rows;
    for (const float weight : weights) sum += static_cast<double>(weight);
  });
  return rows > 0 ? sum / static_cast<double>(rows) : nan;
}

}  // namespace

std::span<const std::int32_t> separator_columns(const MetricInput& in) {
  return keys_among(in, in.text.links.separators);
}
std::span<const std::int32_t> punctuation_columns(const MetricInput& in) {
  return keys_among(in, in.text.links.punctuation);
}
std::span<const std::int32_t> rare_columns(const MetricInput& in) {
  return keys_among(in, in.text.words.once);
}

double separator(const MetricInput& in) {
  return mass_on(in, separator_columns(in));
}
double punctuation(const MetricInput& in) {
  return mass_on(in, punctuation_columns(in));
}
double rare_words(const MetricInput& in) {
  return mass_on(in, rare_columns(in));
}
KeysOfRow separator_cells(const MetricInput& in) {
  return cells_on(separator_columns(in));
}
KeysOfRow punctuation_cells(const MetricInput& in) {
  return cells_on(punctuation_columns(in));
}
KeysOfRow rare_cells(const MetricInput& in) {
  return cells_on(rare_columns(in));
}

// A query that sees no other sentence has no choice, and says nothing; nor does one that stands in none.
KeysOfRow sentence_cells(const MetricInput& in) {
  return [&map = in.map, &sentences = in.text.words.sentences](Index query, std::vector<Index>& keys) {
    const Index position = map.place().offset + query;
    const auto after = std::ranges::upper_bound(sentences, position, {}, &KeyRange::begin);
    if (after == sentences.begin() || position >= (after - 1)->end) return;
    const auto own = after - 1;
    const KeyRange seen = visible_range(map, query);
    const bool sees_another = (own != sentences.begin() && seen.begin < (own - 1)->end) ||
                              (after != sentences.end() && seen.end > after->begin);
    if (!sees_another) return;
    for (Index key = own->begin; key < std::min(own->end, map.n_key()); ++key) keys.push_back(key);
  };
}
double own_sentence(const MetricInput& in) {
  return mean_on_cells(in, sentence_cells(in));
}

KeysOfRow related_cells(const MetricInput& in, WordRelation relation) {
  return [&list = in.text.words.of(relation), offset = in.map.place().offset, n_key = in.map.n_key()](
             Index query, std::vector<Index>& keys) {
    if (offset + query >= list.rows()) return;
    for (const std::int32_t key : list.row(static_cast<int>(offset + query)))
      if (key < n_key) keys.push_back(key);
  };
}
double related_word(const MetricInput& in, WordRelation relation) {
  return mean_on_cells(in, related_cells(in, relation));
}

}  // namespace headscope
