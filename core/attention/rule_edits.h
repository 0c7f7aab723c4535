#pragma once
// Rules made of other rules: what an edit does to the scores of a head, replayable for any cell, so that edited maps
// may stay factored. Queries and keys are absolute positions.

#include <functional>
#include <memory>

#include "core/trace/attention_rule.h"

namespace headscope {

using RulePtr = std::shared_ptr<const AttentionRule>;

/// Scores of query i times factor(i); what `base` adds is scaled too, and what it masks stays masked.
RulePtr scaled_rule(RulePtr base, std::function<float(Index query)> factor, std::string name);
/// bias(i, j) added to the scores that `base` lets through.
RulePtr biased_rule(RulePtr base, std::function<float(Index query, Index key)> bias, std::string name);
/// `base` without keys [0, count).
RulePtr without_first(RulePtr base, Index count);
/// Query i sees the one key of(i) if `base` lets it, else nothing.
RulePtr one_key_rule(RulePtr base, std::function<Index(Index query)> of, std::string name);
/// `inside` for queries first … last (both included), `outside` for the others.
RulePtr rule_at(Index first, Index last, RulePtr inside, RulePtr outside);

}  // namespace headscope
