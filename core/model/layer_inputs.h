#pragma once
// What every layer gets of a token by itself (Gemma 3n, Gemma 4): of ModelDims::d_layer = w numbers,
//   inputs = (norm(x W ÷ √d_model) + √w · row of the table) ÷ √2      (token, layers · w), x the embedding
//   added  = norm((φ(x W_gate) ∘ input) W_out)                        (token, d_model), x the stream behind the MLP
// Private to core/model.

#include <cstdint>
#include <span>

#include "core/model/config.h"
#include "core/model/weights.h"
#include "core/tensor/backend.h"

namespace headscope {

struct LayerInputs {
  Tensor table;       ///< (layer_vocab, layers · w)
  Linear projection;  ///< W
  NormWeights norm;   ///< (w)
};
/// x (token, d_model).
Tensor layer_inputs(const ModelConfig& config, const LayerInputs& weights, Backend& backend, const Tensor& x,
                    std::span<const std::int32_t> tokens, RowQueue* later);

/// Of one layer.
struct LayerInput {
  Linear gate, out;
  NormWeights norm;
};
/// x (token, d_model), input (token, w).
Tensor added_by_input(const ModelConfig& config, const LayerInput& weights, Backend& backend, const Tensor& x,
                      const Tensor& input, RowQueue* later);

}  // namespace headscope
