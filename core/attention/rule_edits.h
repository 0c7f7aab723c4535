#pragma once
// Rules made of other rules: what an edit does to the scores of a head, replayable for any cell, so that edited maps
// may stay factored. Queries and keys are absolute positions.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/trace/attention_rule.h"

namespace headscope {

using RulePtr = std::shared_ptr<const AttentionRule>;

/// Scores of query i times factor(i); what `base` adds is scaled too, and what it masks stays masked.
RulePtr scaled_rule(RulePtr base, std::function<float(Index query)> factor, std::string name);
/// bias(i, j) added to the scores that `base` lets through.
RulePtr biased_rule(RulePtr base, std::function<float(Index query, Index key)> bias, std::string name);
/// cap · tanh(score ÷ cap), before anything that `base` does (Bello et al., Neural Combinatorial Optimization, 2016;
/// Gemma 2). REQUIRES a base that bends no scores itself.
RulePtr capped_rule(RulePtr base, float cap);
/// A logit of its own in every row's softmax, which takes weight and gives nothing.
RulePtr sink_rule(RulePtr base, float sink);
/// `base` without keys [0, count).
RulePtr without_first(RulePtr base, Index count);
/// Query i sees the one key of(i) if `base` lets it, else nothing; no sink takes of its weight.
RulePtr one_key_rule(RulePtr base, std::function<Index(Index query)> of, std::string name);

/// What holds for the queries from the end of the part before (from 0) up to `end`, not included.
struct RuleOfRows {
  Index end = 0;
  RulePtr rule;
};
/// Each part for its queries, the last also for those behind it. REQUIRES at least one part, ends ascending.
RulePtr rule_by_rows(std::vector<RuleOfRows> parts);

/// How many of the keys [0, n_key) each of the queries [0, n_query) may see.
std::vector<Index> seen_keys(const AttentionRule& rule, Index n_query, Index n_key);
/// ln n ÷ ln m for a row that sees n keys; 0 for one that sees none.
float length_factor(Index keys, double trained);
/// Scores of row i, with what `base` adds, times length_factor(seen[i], trained).
RulePtr length_scaled_rule(RulePtr base, const std::vector<Index>& seen, double trained);

}  // namespace headscope
