#pragma once
// How much a head reads what an earlier one wrote (Elhage et al., A Mathematical Framework for Transformer Circuits,
// 2021). With row vectors, head A (earlier) writes x W_OV^A, W_OV = W_V W_O, and head B scores x W_QK^B yᵀ,
// W_QK = W_Q W_Kᵀ. ‖·‖ is the Frobenius norm:
//   Q   ‖W_OV^A W_QK^B‖ / (‖W_OV^A‖ ‖W_QK^B‖)        A feeds B's queries
//   K   ‖W_OV^A (W_QK^B)ᵀ‖ / (‖W_OV^A‖ ‖W_QK^B‖)     A feeds B's keys
//   V   ‖W_OV^A W_OV^B‖ / (‖W_OV^A‖ ‖W_OV^B‖)        A feeds B's values
// The gain of each block's first norm is folded into W_Q, W_K and W_V (and the mean that a LayerNorm takes away). All
// products are taken through d_head × d_head matrices; no d_model × d_model one is formed. Random matrices of the same
// shape do not score 0: `chance` says what they score.

#include <cstdint>
#include <utility>
#include <vector>

#include "core/model/model.h"

namespace headscope {

struct Composition {
  std::vector<HeadId> heads;  ///< of the layers that attend, layer by layer
  Tensor q, k, v;             ///< (earlier head, later head), 0 … 1; NaN unless the layer is a later one
  struct Chance {
    double mean = 0, deviation = 0;  ///< of `samples` pairs of normal random matrices of these shapes
    int samples = 0;
    std::uint64_t seed = 0;
  } chance;
};

/// Throws Cancelled.
Composition head_composition(const Model& model, const Ctx& ctx, int samples = 32, std::uint64_t seed = 1);

}  // namespace headscope
