#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/plain_parts.h"

namespace headscope::plain {

namespace {
/// Σ_j w_j x_(t − K + 1 + j) + b of every column by itself; what lies before the first row is 0.
Table convolved(const Table& x, const Tensor& weight, const Tensor& bias) {
  Table y(x.rows, x.columns);
  const Index width = weight.dim(1);
  for (Index t = 0; t < x.rows; ++t)
    for (Index channel = 0; channel < x.columns; ++channel) {
      double sum = bias.defined() ? number(bias, channel) : 0;
      for (Index j = 0; j < width; ++j)
        if (const Index from = t - width + 1 + j; from >= 0)
          sum += static_cast<double>(weight.at(channel, j)) * x.at(from, channel);
      y.at(t, channel) = sum;
    }
  return y;
}

/// What a layer's states are given of every token. A lane is a channel, or a head of several.
struct Given {
  Table x, delta, b, c;  // (token, channel), (token, lane), (token, group · state)
};

Given given(const ModelConfig& config, const RawStateSpace& w, const Table& x, const std::stop_token& stop) {
  const StateSpaceConfig& s = *config.state_space;
  const Index inner = config.dims.d_inner, states = Index{config.dims.state_groups} * config.dims.d_state;
  Table read = convolved(product(x, w.x_weight, w.x_bias, stop), w.convolution_weight, w.convolution_bias);
  activate(config.state_activation.value_or(config.activation), read, {});
  Given out;
  if (s.lane == StateSpaceConfig::Lane::channel) {
    const Table all = product(read, w.select_weight, {}, stop);
    Table few = columns(all, 0, s.step_rank);
    if (s.select_norms) normalize(config, NormKind::rms_norm, few, 0, few.columns, w.step_norm_gain, {});
    out.delta = product(few, w.step_weight, w.step_bias, stop);
    out.b = columns(all, s.step_rank, s.step_rank + states);
    out.c = columns(all, s.step_rank + states, s.step_rank + 2 * states);
    if (s.select_norms) {
      normalize(config, NormKind::rms_norm, out.b, 0, out.b.columns, w.b_norm_gain, {});
      normalize(config, NormKind::rms_norm, out.c, 0, out.c.columns, w.c_norm_gain, {});
    }
    out.x = std::move(read);
  } else {
    out.delta = product(x, w.step_weight, w.step_bias, stop);
    out.x = columns(read, 0, inner);
    out.b = columns(read, inner, inner + states);
    out.c = columns(read, inner + states, inner + 2 * states);
  }
  for (Index t = 0; t < out.delta.rows; ++t)
    for (Index lane = 0; lane < out.delta.columns; ++lane) {
      double& step = out.delta.at(t, lane);
      step = std::clamp(softplus(step + number(w.delta_bias, lane)), s.least_step, s.most_step);
    }
  return out;
}
}  // namespace

Table through_states(const ModelConfig& c, const RawLayer& layer, const Table& x, std::vector<Table>& patterns,
                     const std::stop_token& stop) {
  const RawStateSpace& w = layer.state_space;
  const Given in = given(c, w, x, stop);
  const Index n = x.rows, lanes = c.dims.lanes, width = c.dims.d_inner / lanes, states = c.dims.d_state,
              heads = c.dims.heads, together = lanes / heads;
  Table z(n, c.dims.d_inner);
  patterns.assign(static_cast<std::size_t>(heads), Table(n, n));
  for (Index lane = 0; lane < lanes; ++lane) {
    if (stop.stop_requested()) throw Cancelled();
    const Index group = lane / (lanes / c.dims.state_groups);
    for (Index state = 0; state < states; ++state) {
      const Index decay = std::min(state, w.decay_log.dim(1) - 1), at = group * states + state;
      const double a = -std::exp(static_cast<double>(w.decay_log.at(lane, decay)));
      // h_t = e^(Δ_t a) h_(t−1) + Δ_t B_t x_t, of which C_t h_t is added.
      std::vector<double> h(static_cast<std::size_t>(width), 0.0);
      for (Index t = 0; t < n; ++t) {
        const double step = in.delta.at(t, lane);
        for (Index i = 0; i < width; ++i) {
          nth(h, i) = std::exp(step * a) * nth(h, i) + step * in.b.at(t, at) * in.x.at(t, lane * width + i);
          z.at(t, lane * width + i) += in.c.at(t, at) * nth(h, i);
        }
        double left = 1;  // of what s wrote: e^(a Σ Δ_r), s < r ≤ t
        for (Index s = t; s >= 0; --s) {
          nth(patterns, lane / together).at(t, s) +=
              in.c.at(t, at) * left * in.delta.at(s, lane) * in.b.at(s, at) / static_cast<double>(together);
          left *= std::exp(a * in.delta.at(s, lane));
        }
      }
    }
    for (Index t = 0; t < n; ++t)
      for (Index i = 0; i < width; ++i) z.at(t, lane * width + i) += number(w.d, lane) * in.x.at(t, lane * width + i);
  }
  const Table gate = product(x, w.gate_weight, w.gate_bias, stop);
  for (std::size_t i = 0; i < z.values.size(); ++i) z.values[i] *= activated(Activation::silu, gate.values[i], {});
  if (c.state_space->gated_norm) {
    const Index of_group = c.dims.d_inner / c.dims.state_groups;
    for (Index first = 0; first < z.columns; first += of_group)
      normalize(c, NormKind::rms_norm, z, first, of_group, w.norm_gain, {}, first);
  }
  return product(z, layer.o_weight, layer.o_bias, stop);
}

}  // namespace headscope::plain
