#pragma once
// Disentangled attention (He et al., DeBERTa: Decoding-enhanced BERT with Disentangled Attention, 2021): a token's
// content and its distance have vectors of their own, and a score is three products,
//   s_ij = scale · ( q_i·k_j + q_i·K_r[δ(i, j)] + k_j·Q_r[δ(i, j)] ),   scale = 1 / √(3 d):
// content to content, content to position, position to content. The paper reads Q_r at δ(j, i) with distances counted
// from key to query; here both tables count from the key (i − j), as the published programs do, so that one row serves
// both.

#include <memory>
#include <span>
#include <vector>

#include "core/attention/rule_edits.h"
#include "core/trace/tap.h"

namespace headscope {

/// δ: row of the table, of `span` rows on either side, for a key so many tokens before its query. With `max_distance`
/// distances up to span/2 have a row each, and farther ones share rows that grow with the logarithm: DeBERTa-v2, v3.
/// Row `span` is distance 0; what lies beyond the table has its first or last row. REQUIRES span ≥ 2, and with a
/// max_distance that it is more than span/2 + 1.
Index distance_row(Index query_minus_key, Index span, int max_distance);

/// All products of the queries and keys of a text with the vectors of the distances in it, by head. While it lives
/// rules that were made with it read it; behind that they multiply cell by cell.
struct DistanceProducts;

/// Of `rule` that of a head whose queries q (query, d_head) and keys k (key, d_head) are known; query 0 stands at
/// `offset`. A rule without distances is given back as it is. Scores that it is applied to are scale · q·k.
RulePtr met_rule(const HeadRule& rule, const Tensor& q, const Tensor& k, Index offset,
                 const std::shared_ptr<const DistanceProducts>& products = nullptr);
/// The same for a map that stores its weights and asks its rule for masked cells alone: that is told without a product.
RulePtr told_rule(const HeadRule& rule);
/// Null without distances.
std::shared_ptr<const DistanceProducts> distance_products(const HeadRule& rule, const Tensor& q, const Tensor& k,
                                                          Index offset);

/// The way back of one query: `d_scores` of the keys [first_key, …) are those of scale · q·k. Adds scale · d · K_r[δ]
/// to d_q (d_head), and scale · d · Q_r[δ] to the rows of d_k (key, d_head); either may be null.
void add_distance_gradients(const HeadRule& rule, Index query, Index first_key, std::span<const float> d_scores,
                            float* d_q, float* d_k, Index d_k_stride);

}  // namespace headscope
