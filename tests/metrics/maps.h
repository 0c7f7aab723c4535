#pragma once
// Small attention maps for the tests of metrics.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "core/metrics/metric.h"
#include "core/trace/attention_map.h"

namespace headscope::testing {

/// A map, the links of its text, and what a metric takes.
struct Head {
  TokenLinks links;
  AttentionMap map;
  MetricInput input() const { return {map, links}; }
  double value(std::string_view id) const { return metric(id).value(input()); }
  double chance(std::string_view id) const { return metric(id).chance(input()); }
};

inline Head head_of(const Tensor& weights, const std::vector<std::int32_t>& tokens,
                    std::shared_ptr<const AttentionRule> rule, Index offset = 0) {
  TokenLinks links = TokenLinks::of(tokens);
  AttentionMap map =
      AttentionMap::dense({.offset = offset}, weights, std::move(rule), stats_of_weights(weights, &links, offset));
  return {std::move(links), std::move(map)};
}

/// The same of tokens that say what they are.
inline Head head_of_text(const Tensor& weights, const std::vector<Token>& tokens,
                         std::shared_ptr<const AttentionRule> rule) {
  TokenLinks links = TokenLinks::of(tokens);
  AttentionMap map = AttentionMap::dense({}, weights, std::move(rule), stats_of_weights(weights, &links, 0));
  return {std::move(links), std::move(map)};
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

}  // namespace headscope::testing
