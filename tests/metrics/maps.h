#pragma once
// Small attention maps for the tests of metrics.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics/metric.h"
#include "core/trace/attention_map.h"

namespace headscope::testing {

/// A map, the marks of its text, and what a metric takes.
struct Head {
  TextMarks text;
  AttentionMap map;
  MetricInput input() const { return {map, text}; }
  double value(std::string_view id) const { return metric(id).value(input()); }
  double chance(std::string_view id) const { return metric(id).chance(input()); }
};

inline Head head_of(const Tensor& weights, const std::vector<std::int32_t>& tokens,
                    std::shared_ptr<const AttentionRule> rule, Index offset = 0) {
  TextMarks text = TextMarks::of(tokens);
  AttentionMap map =
      AttentionMap::dense({.offset = offset}, weights, std::move(rule), stats_of_weights(weights, &text.links, offset));
  return {std::move(text), std::move(map)};
}

/// The same of tokens that say what they are.
inline Head head_of_text(const Tensor& weights, const std::vector<Token>& tokens,
                         std::shared_ptr<const AttentionRule> rule) {
  TextMarks text = TextMarks::of(tokens);
  AttentionMap map = AttentionMap::dense({}, weights, std::move(rule), stats_of_weights(weights, &text.links, 0));
  return {std::move(text), std::move(map)};
}

/// Row by row; shorter rows are filled with zeros up to the number of rows.
inline Tensor rows_of(std::initializer_list<std::initializer_list<float>> rows) {
  const auto n = static_cast<Index>(rows.size());
  Tensor weights = Tensor::zeros({n, n});
  Index i = 0;
  for (const auto& row : rows) {
    Index j = 0;
    for (const float weight : row) weights.ref(i, j++) = weight;
    ++i;
  }
  return weights;
}

/// Causal with keys 2 and 5 hidden from everyone behind them, and nothing older than six tokens: a mask with holes.
class Holes final : public AttentionRule {
 public:
  KeyRange keys(Index query, Index n_key) const override {
    return {std::min(std::max<Index>(0, query - 6), n_key), std::min(query + 1, n_key)};
  }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const Index key = first_key + static_cast<Index>(i);
      scores[i] += 0.5f * static_cast<float>(key);
      if ((key == 2 || key == 5) && key < query) scores[i] = -std::numeric_limits<float>::infinity();
    }
  }
  std::string describe() const override { return "holes"; }
};

}  // namespace headscope::testing
