#include "core/model/layer_inputs.h"

#include <cmath>

namespace headscope {

Tensor layer_inputs(const ModelConfig& c, const LayerInputs& w, Backend& b, const Tensor& x,
                    std::span<const std::int32_t> tokens, RowQueue* later) {
  const Index layers = c.dims.layers, width = c.dims.d_layer, n = x.dim(0);
  const auto root = [](Index of) { return std::sqrt(static_cast<float>(of)); };
  const Tensor made = b.scale(b.linear(x, w.projection, later), 1 / root(c.dims.d_model), later);
  const Tensor normed = normalized(c, w.norm, b, made.reshape({n, layers, width}), later);
  const Tensor told = b.scale(b.gather(w.table, tokens), root(width), later);
  return b.scale(b.add(normed.reshape({n, layers * width}), told, later), 1 / root(2), later);
}

Tensor added_by_input(const ModelConfig& c, const LayerInput& w, Backend& b, const Tensor& x, const Tensor& input,
                      RowQueue* later) {
  const Tensor gate = activated(c.activation, {}, b, b.linear(x, w.gate, later), later);
  return normalized(c, w.norm, b, b.linear(b.multiply(gate, input, later), w.out, later), later);
}

}  // namespace headscope
