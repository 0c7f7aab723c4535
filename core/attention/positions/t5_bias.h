#pragma once
// T5's relative bias (Raffel et al., Exploring the Limits of Transfer Learning, 2020): distances fall into buckets,
// near ones one by one, far ones in ranges that grow with the logarithm; a score gains its bucket's learned number.

#include <vector>

#include "core/attention/rule_edits.h"

namespace headscope {

/// Bucket of key − query. Half of the buckets (bidirectional: half of each side's half) hold one distance each, the
/// others reach `max_distance` logarithmically; what lies beyond falls into the last. Without `bidirectional` later
/// keys share bucket 0. REQUIRES buckets ≥ 2 (bidirectional 4), max_distance > buckets / 2.
int t5_bucket(Index key_minus_query, bool bidirectional = false, int buckets = 32, int max_distance = 128);

/// `base` with bias[bucket] added. REQUIRES bias.size() = buckets.
RulePtr t5_rule(RulePtr base, std::vector<float> bias, int max_distance, bool bidirectional = false);

/// The numbers that come nearest to given scores: their mean over the cells of each bucket, less the mean of its row
/// (which the softmax does not see). `scores` (query, key); only keys that `rule` shows count. A bucket without a cell
/// takes its nearer neighbour's number.
std::vector<float> t5_fit(const Tensor& scores, const AttentionRule& rule, int buckets, int max_distance);

}  // namespace headscope
