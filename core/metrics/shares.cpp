#include "core/metrics/shares.h"

#include <cmath>

#include "core/metrics/metric.h"
#include "core/trace/attention_rule.h"

namespace headscope {

void to_shares(std::span<float> row) {
  double sum = 0;
  for (const float weight : row) sum += std::abs(static_cast<double>(weight));
  for (float& weight : row) weight = sum > 0 ? static_cast<float>(std::abs(static_cast<double>(weight)) / sum) : 0.0f;
}

AttentionMap as_shares(const AttentionMap& map, const TokenLinks& links) {
  if (has_probabilities(map)) return map;
  Tensor shares = map.to_dense();
  for (Index i = 0; i < shares.dim(0); ++i)
    to_shares(shares.mutable_values().subspan(static_cast<std::size_t>(i * shares.dim(1)),
                                              static_cast<std::size_t>(shares.dim(1))));
  AttentionMap::Place place = map.place();
  place.kind = MapKind::probability;
  return AttentionMap::dense(place, shares, causal_rule(), stats_of_weights(shares, &links, place.offset));
}

}  // namespace headscope
