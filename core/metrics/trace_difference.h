#pragma once
// Two runs held side by side: heads ranked by how differently they look, cell by cell where their tokens correspond.
// `partner` says for every position of `a` which position of `b` stands for it, or −1 (core/trace/token_alignment.h).

#include <limits>
#include <span>
#include <stop_token>
#include <vector>

#include "core/metrics/next_token_change.h"
#include "core/trace/head_id.h"
#include "core/trace/trace.h"

namespace headscope {

/// align_tokens() of two traces by what their tokens stand for, so that vocabularies may differ. Of the keys; where
/// queries are of another text, align_queries() has theirs, else both are the same.
std::vector<int> align_traces(const Trace& a, const Trace& b);
std::vector<int> align_queries(const Trace& a, const Trace& b);

/// Means over the paired queries of the distance between two rows. A row is a distribution over the keys of both texts:
/// a pair of keys is one outcome, a key without a partner has weight 0 in the other text.
struct HeadDifference {
  HeadId id;
  double total_variation = std::numeric_limits<double>::quiet_NaN();  ///< ½ Σ |a − b|: 0 the same, 1 nothing in common
  /// ½ KL(a ‖ m) + ½ KL(b ‖ m), m = (a + b) / 2, in nats: 0 … ln 2 (Lin, Divergence Measures Based on the Shannon
  /// Entropy, 1991). NaN where a weight is negative.
  double jensen_shannon = std::numeric_limits<double>::quiet_NaN();
  Index rows = 0;  ///< pairs of queries that were compared; without any both are NaN
};

/// `partner` pairs the keys, and the queries too unless `queries` pairs those.
HeadDifference head_difference(const AttentionMap& a, const AttentionMap& b, std::span<const int> partner,
                               Index most_rows = std::numeric_limits<Index>::max(), std::span<const int> queries = {});
/// Every head that both traces hold, in the order of `a`. `most_rows` evenly spaced pairs stand for more. Queries
/// of another text are paired by align_queries(). Throws Cancelled, and Error where one of the two is within one text
/// and the other between two.
std::vector<HeadDifference> head_differences(const Trace& a, const Trace& b, std::span<const int> partner,
                                             Index most_rows = std::numeric_limits<Index>::max(),
                                             const std::stop_token& stop = {});

/// b − a at the paired cells, (query, key) of `a`; NaN where the query or the key has no partner.
Tensor aligned_difference(const AttentionMap& a, const AttentionMap& b, std::span<const int> partner,
                          std::span<const int> queries = {});

/// What is predicted after every position of `a` that has a partner: KL(a ‖ b) in nats, NaN where there is none, or
/// where logits were not kept. Empty when the vocabularies differ in size.
std::vector<double> aligned_kl(const Trace& a, const Trace& b, std::span<const int> partner);

}  // namespace headscope
