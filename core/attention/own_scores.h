#pragma once
// What a model itself does to the scores of the keys that a query sees, as part of the rule.

#include "core/attention/rule_edits.h"
#include "core/trace/tap.h"

namespace headscope {

/// `visible` with the scores bent and biased as `usual` says; `positions` false leaves the bias out.
RulePtr own_scores(RulePtr visible, const HeadRule& usual, bool positions = true);

}  // namespace headscope
