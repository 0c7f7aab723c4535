#include "core/attention/own_scores.h"

#include <cmath>

#include "core/attention/positions/alibi.h"
#include "core/attention/positions/place_bias.h"
#include "core/attention/positions/t5_bias.h"

namespace headscope {

RulePtr own_scores(RulePtr visible, const HeadRule& usual, bool positions) {
  if (std::isfinite(usual.sink)) visible = sink_rule(std::move(visible), usual.sink);
  if (usual.cap > 0) visible = capped_rule(std::move(visible), usual.cap);
  if (usual.slope != 0 && positions)
    visible = usual.slope_unit > 0 ? rounded_alibi_rule(std::move(visible), usual.slope, usual.slope_unit)
                                   : alibi_rule(std::move(visible), usual.slope);
  if (usual.buckets && positions) {
    const BucketBias& own = *usual.buckets;
    visible = own.rows > 0 ? place_rule(std::move(visible), own.bias, own.rows, own.columns)
                           : t5_rule(std::move(visible), own.bias, own.max_distance, own.both_sides);
  }
  return visible;
}

}  // namespace headscope
