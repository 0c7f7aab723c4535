#pragma once
// Locality-sensitive hashing of queries and keys (Kitaev et al., Reformer: The Efficient Transformer, 2020; the angular
// hash is Andoni et al., 2015): vectors that point the same way fall into the same bucket, and only those meet.
//   h(x) = argmax([x R; −x R]),  R (d, buckets/2) drawn from N(0, 1), once per round.
// Cost: n · d · buckets/2 · rounds multiply-adds for the buckets, then only the cells of shared buckets.

#include <cstdint>
#include <vector>

#include "core/attention/rule_edits.h"

namespace headscope {

struct LshSettings {
  int buckets = 8;  ///< even
  int rounds = 2;
  std::uint64_t seed = 1;
};

/// The bucket of every row of x (token, d) in every round: entry round · tokens + token.
std::vector<int> lsh_buckets(const Tensor& x, const LshSettings& settings);

/// Query i sees key j ≤ i when they share a bucket in some round, and itself. Reformer makes keys of the queries; a
/// model that was trained with both is hashed with both.
RulePtr lsh_rule(const Tensor& q, const Tensor& k, const LshSettings& settings, std::string name);

/// As Reformer shares them: the keys are the queries. Query i sees the earlier j whose query shares a bucket with its
/// own in some round; itself only where there is none (section 2, "Causal masking for shared-QK attention").
RulePtr shared_lsh_rule(const Tensor& q, const LshSettings& settings, std::string name);

/// Of the `top` keys j ≤ i with the largest q_i·k_j, the share that `rule` shows; mean over queries that have so many.
double recall_of_top(const Tensor& q, const Tensor& k, const AttentionRule& rule, int top);

}  // namespace headscope
