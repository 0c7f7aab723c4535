#pragma once
// Keys and values from one small latent per token, c = x W_down, k = c W_up^K, v = c W_up^V: what the cache keeps is c
// (DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model, 2024, multi-head latent
// attention). For a model that was trained without one, the best W_down and W_up of a rank in the least-squares sense
// are the singular value decomposition of [W_K W_V], cut off (Eckart & Young, 1936).

#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct LatentFactors {
  Tensor down;                   ///< (d_model, rank)
  Tensor up_k, up_v;             ///< (rank, kv_heads · d_head)
  std::vector<double> singular;  ///< of [W_K W_V], all of them, largest first
  /// ‖W − W_r‖ / ‖W‖ (Frobenius): √(Σ_{i>r} σ_i² / Σ σ_i²)
  double error = 0;
};

/// w_k, w_v (d_model, kv_heads · d_head). `rank` above what the weights have is cut to that.
LatentFactors factor_keys(const Tensor& w_k, const Tensor& w_v, int rank);

}  // namespace headscope
