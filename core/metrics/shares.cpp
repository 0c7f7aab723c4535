#include "core/metrics/shares.h"

#include <cmath>

#include "core/attention/masks.h"
#include "core/metrics/metric.h"

namespace headscope {

AttentionMap as_shares(const AttentionMap& map, const TokenLinks& links) {
  if (has_probabilities(map)) return map;
  Tensor shares = map.to_dense();
  for (Index i = 0; i < shares.dim(0); ++i) {
    double sum = 0;
    for (Index j = 0; j < shares.dim(1); ++j) sum += std::abs(static_cast<double>(shares.at(i, j)));
    for (Index j = 0; sum > 0 && j < shares.dim(1); ++j)
      shares.ref(i, j) = static_cast<float>(std::abs(static_cast<double>(shares.at(i, j))) / sum);
  }
  AttentionMap::Place place = map.place();
  place.kind = MapKind::probability;
  return AttentionMap::dense(place, shares, causal_rule(), stats_of_weights(shares, &links, place.offset));
}

}  // namespace headscope
