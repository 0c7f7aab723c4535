#pragma once
// Transformer-XL's relative positions (Dai et al., 2019): the product of two embedded tokens, expanded, with absolute
// positions replaced by the distance and the query's position by two learned vectors:
//   s_ij = scale · ( q_i·k_j            content
//                  + q_i·r_{i−j}        how much this content cares for a distance
//                  + u·k_j              how much this key is wanted anyway
//                  + v·r_{i−j} )        how much a distance is wanted anyway,   r_δ = W_R PE(δ).

#include "core/tensor/tensor.h"

namespace headscope {

struct TransformerXlTerms {
  Tensor content, content_position, key_bias, position_bias;  ///< (query, key) each, scaled
  Tensor sum;                                                 ///< the scores
};

/// q (query, d), k (key, d), u, v (d), w_r (d_model, d): r_δ = PE(δ) w_r for δ = i − j ≥ 0. Keys ahead of a query
/// (which Transformer-XL masks) get δ < 0, whose sinusoid is as well defined.
TransformerXlTerms transformer_xl_scores(const Tensor& q, const Tensor& k, const Tensor& u, const Tensor& v,
                                         const Tensor& w_r, double scale);

}  // namespace headscope
