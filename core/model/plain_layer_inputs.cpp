// What is added to the stream behind a block, by its definition: inputs of every layer's own, and the convolution
// beside the first.

#include <cmath>

#include "core/base/nth.h"
#include "core/model/plain_parts.h"

namespace headscope::plain {

Table of_every_layer(const ModelConfig& c, const RawWeights& all, const Table& x, std::span<const std::int32_t> tokens,
                     const std::stop_token& stop) {
  const Index layers = c.dims.layers, width = c.dims.d_layer;
  Table out = product(x, all.layer_projection, {}, stop);
  for (double& value : out.values) value /= std::sqrt(static_cast<double>(c.dims.d_model));
  for (int layer = 0; layer < layers; ++layer) normalize(c, c.norm, out, layer * width, width, all.layer_gain, {});
  for (Index row = 0; row < out.rows; ++row)
    for (Index i = 0; i < out.columns; ++i)
      out.at(row, i) = (out.at(row, i) + std::sqrt(static_cast<double>(width)) *
                                             number(all.layer_embedding.select(0, nth(tokens, row)), i)) /
                       std::sqrt(2.0);
  return out;
}

Table leaving(const ModelConfig& c, const RawLayer& w, int layer, const Table& inputs, Table x,
              const std::stop_token& stop) {
  if (const Index width = c.dims.d_layer; width > 0) {
    Table gate = product(x, w.input_gate_weight, {}, stop);
    activate(c.activation, gate, {});
    for (Index row = 0; row < x.rows; ++row)
      for (Index i = 0; i < width; ++i) gate.at(row, i) *= inputs.at(row, layer * width + i);
    Table added = product(gate, w.input_out_weight, {}, stop);
    normalize(c, c.norm, added, 0, added.columns, w.input_gain, {});
    for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += added.values[i];
  }
  if (c.dims.stream_scales)
    for (double& value : x.values) value *= number(w.stream_scale, 0);
  return x;
}

Table beside_first(const ModelConfig& c, const RawConvolution& w, const Table& x, Table y,
                   const std::stop_token& stop) {
  Table taps(x.rows, x.columns);
  for (Index tap = 0; tap < c.convolution->tokens; ++tap) {
    Table near(x.rows, x.columns);
    for (Index row = 0; row < x.rows; ++row)
      if (const Index from = row + tap - c.convolution->tokens / 2; from >= 0 && from < x.rows)
        for (Index i = 0; i < x.columns; ++i) near.at(row, i) = x.at(from, i);
    const Table part = product(near, nth(w.taps, tap), tap == 0 ? w.bias : Tensor(), stop);
    for (std::size_t i = 0; i < part.values.size(); ++i) taps.values[i] += part.values[i];
  }
  activate(c.convolution->activation, taps, {});
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += taps.values[i];
  normalize(c, c.norm, y, 0, y.columns, w.gain, w.gain_bias);
  return y;
}

}  // namespace headscope::plain
