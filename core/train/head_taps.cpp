#include "core/train/head_taps.h"

#include <cmath>

#include "core/attention/masks.h"
#include "core/metrics/metric.h"

namespace headscope {

std::vector<Index> tokens_of(const std::vector<Token>& tokens, const TextSpan& span) {
  std::vector<Index> found;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].begin >= 0 && static_cast<std::size_t>(tokens[i].end) > span.begin &&
        static_cast<std::size_t>(tokens[i].begin) < span.end)
      found.push_back(static_cast<Index>(i));
  return found;
}

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

Tensor WithoutHead::at(Site, const Tensor& value) {
  Tensor out = value.copy();  // (query, head, d_head)
  for (Index i = 0; i < out.dim(0); ++i)
    for (Index d = 0; d < out.dim(2); ++d) out.ref(i, head_.head, d) = 0;
  return out;
}

}  // namespace headscope
