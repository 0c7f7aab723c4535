#pragma once
// Rules as files of traces tell them: read back as far as they say which keys a query sees. What else they do to scores
// (soft caps, temperatures, biases of positions, learned sinks) is in the weights that stand beside them.

#include <string_view>

#include "core/attention/rule_edits.h"

namespace headscope {

/// From AttentionRule::describe(): a mask, or what edits and own scores made of one, by rows or not, "window 4, soft
/// cap 30 at 0..3; window 4, previous token at 4..9". Throws Error on a text that no rule gives.
RulePtr parse_described_rule(std::string_view description);

}  // namespace headscope
