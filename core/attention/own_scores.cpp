#include "core/attention/own_scores.h"

#include "core/attention/positions/alibi.h"

namespace headscope {

RulePtr own_scores(RulePtr visible, const HeadRule& usual, bool positions) {
  if (usual.cap > 0) visible = capped_rule(std::move(visible), usual.cap);
  if (usual.slope != 0 && positions) visible = alibi_rule(std::move(visible), usual.slope);
  return visible;
}

}  // namespace headscope
