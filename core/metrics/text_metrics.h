#pragma once
// Metrics of what a text says of its tokens: separators, punctuation, words that stand once, sentences, and the words
// that belong to one another (core/trace/word_links.h). Rows of the table in metrics.cpp.

#include "core/metrics/metric.h"

namespace headscope {

double separator(const MetricInput& in);
double punctuation(const MetricInput& in);
KeysOfRow separator_cells(const MetricInput& in);
KeysOfRow punctuation_cells(const MetricInput& in);
std::span<const std::int32_t> separator_columns(const MetricInput& in);
std::span<const std::int32_t> punctuation_columns(const MetricInput& in);

double rare_words(const MetricInput& in);
KeysOfRow rare_cells(const MetricInput& in);
std::span<const std::int32_t> rare_columns(const MetricInput& in);

double own_sentence(const MetricInput& in);
KeysOfRow sentence_cells(const MetricInput& in);

double related_word(const MetricInput& in, WordRelation relation);
KeysOfRow related_cells(const MetricInput& in, WordRelation relation);
template <WordRelation Relation>
double related_word(const MetricInput& in) {
  return related_word(in, Relation);
}
template <WordRelation Relation>
KeysOfRow related_cells(const MetricInput& in) {
  return related_cells(in, Relation);
}

}  // namespace headscope
