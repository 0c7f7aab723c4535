#pragma once
// Relative position representations (Shaw et al., 2018): every distance up to w has an embedding of its own, which is
// added to keys (and to values): s_ij = scale · q_i·(k_j + a^K_c), z_i = Σ_j p_ij (v_j + a^V_c), c = clip(j − i, −w,
// w).

#include "core/tensor/tensor.h"

namespace headscope {

/// Row of the tables for key − query: 0 … 2w.
Index shaw_index(Index key_minus_query, Index w);

/// (query, key). q (query, d), k (key, d), table (2w + 1, d) = a^K.
Tensor shaw_scores(const Tensor& q, const Tensor& k, const Tensor& table, double scale);
/// What a^V adds to the outputs: Σ_j p_ij a^V_c, (query, d). pattern (query, key), table (2w + 1, d).
Tensor shaw_values(const Tensor& pattern, const Tensor& table);

}  // namespace headscope
