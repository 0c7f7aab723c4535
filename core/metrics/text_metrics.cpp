#include "core/metrics/text_metrics.h"

#include <algorithm>
#include <utility>

#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/metrics/even_head.h"
#include "core/metrics/mass.h"

namespace headscope {

namespace {

/// The share of weight on some positions of a text. Rows that see none of them have none there.
double mass_on(const MetricInput& in, const std::vector<std::int32_t>& positions) {
  const auto beyond = std::ranges::lower_bound(positions, in.map.n_key());
  double sum = 0;
  for (auto key = positions.begin(); key != beyond; ++key) sum += nth(column_mass(in.map), *key);
  Index rows = 0;
  for (Index query = 0; query < in.map.n_query(); ++query)
    rows += std::any_of(positions.begin(), beyond, [&](Index key) { return !in.map.masked(query, key); });
  return rows > 0 ? sum / static_cast<double>(rows) : nan;
}

KeysOfRow cells_on(const MetricInput& in, const std::vector<std::int32_t>& positions) {
  return [&positions, n_key = in.map.n_key()](Index, std::vector<Index>& keys) {
    for (const Index key : positions)
      if (key < n_key) keys.push_back(key);
  };
}

/// Where the words of a text are known; else as of a text without any.
const WordLinks& words_of(const MetricInput& in) {
  static const WordLinks none;
  return in.words ? *in.words : none;
}

/// Mean, over the queries that see any of their cells, of the weight on these. Reads of every row the stretch from the
/// first of them to the last.
template <class OfRow>
double mean_on_cells(const MetricInput& in, OfRow&& of_row) {
  double sum = 0;
  Index rows = 0;
  std::vector<Index> keys;
  for (Index query = 0; query < in.map.n_query(); ++query) {
    keys.clear();
    of_row(query, keys);
    std::erase_if(keys, [&](Index key) { return in.map.masked(query, key); });
    if (keys.empty()) continue;
    ++rows;
    const Tensor stretch = in.map.tile({query, query + 1}, {keys.front(), keys.back() + 1});
    for (const Index key : keys) sum += static_cast<double>(stretch.at(0, key - keys.front()));
  }
  return rows > 0 ? sum / static_cast<double>(rows) : nan;
}

/// Tokens of the sentence that holds a position.
KeyRange sentence_of(const WordLinks& words, Index position, Index n_key) {
  const auto after = std::ranges::upper_bound(words.sentences, position);
  return {after == words.sentences.begin() ? 0 : *(after - 1),
          after == words.sentences.end() ? n_key : std::min<Index>(*after, n_key)};
}

}  // namespace

double separator(const MetricInput& in) {
  return mass_on(in, in.links.separators);
}
double punctuation(const MetricInput& in) {
  return mass_on(in, in.links.punctuation);
}
KeysOfRow separator_cells(const MetricInput& in) {
  return cells_on(in, in.links.separators);
}
KeysOfRow punctuation_cells(const MetricInput& in) {
  return cells_on(in, in.links.punctuation);
}

double rare_words(const MetricInput& in) {
  return mass_on(in, words_of(in).once);
}
KeysOfRow rare_cells(const MetricInput& in) {
  return cells_on(in, words_of(in).once);
}

// A query that sees no other sentence has no choice, and says nothing.
KeysOfRow sentence_cells(const MetricInput& in) {
  return [in, &words = words_of(in)](Index query, std::vector<Index>& keys) {
    const KeyRange own = sentence_of(words, in.map.place().offset + query, in.map.n_key());
    const KeyRange seen = visible_range(in.map, query);
    if (words.sentences.empty() || (seen.begin >= own.begin && seen.end <= own.end)) return;
    for (Index key = own.begin; key < own.end; ++key) keys.push_back(key);
  };
}
double own_sentence(const MetricInput& in) {
  return mean_on_cells(in, sentence_cells(in));
}

KeysOfRow related_cells(const MetricInput& in, WordRelation relation) {
  return [&list = words_of(in).of(relation), offset = in.map.place().offset, n_key = in.map.n_key()](
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
