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
  Table read = product(x, w.x_weight, w.x_bias, stop);
  if (!s.steady) read = convolved(read, w.convolution_weight, w.convolution_bias);
  activate(config.state_activation.value_or(config.activation), read, {});
  Given out;
  if (s.lane == StateSpaceConfig::Lane::delta) {
    out.delta = product(x, w.step_weight, w.step_bias, stop);
    out.c = columns(read, 0, states);
    out.b = columns(read, states, 2 * states);
    out.x = columns(read, 2 * states, 2 * states + inner);
  } else if (s.lane == StateSpaceConfig::Lane::channel) {
    const Table all = product(read, w.select_weight, {}, stop);
    Table few = columns(all, 0, s.step_rank);
    const auto norm = [&](Table& table, const Tensor& gain) {
      if (s.select_norms) normalize(config, NormKind::rms_norm, table, 0, table.columns, gain, {}, 0, s.select_epsilon);
    };
    norm(few, w.step_norm_gain);
    out.delta = product(few, w.step_weight, w.step_bias, stop);
    out.b = columns(all, s.step_rank, s.step_rank + states);
    out.c = columns(all, s.step_rank + states, s.step_rank + 2 * states);
    norm(out.b, w.b_norm_gain), norm(out.c, w.c_norm_gain);
    out.x = std::move(read);
  } else {
    if (!s.steady) out.delta = product(x, w.step_weight, w.step_bias, stop);
    out.x = columns(read, 0, inner);
    out.b = columns(read, inner, inner + states);
    out.c = columns(read, inner + states, inner + 2 * states);
  }
  if (s.steady) {
    out.delta = Table(x.rows, config.dims.lanes);
    std::ranges::fill(out.delta.values, 1.0);
    return out;
  }
  for (Index t = 0; t < out.delta.rows; ++t)
    for (Index lane = 0; lane < out.delta.columns; ++lane) {
      double& step = out.delta.at(t, lane);
      step = std::clamp(softplus(step + number(w.delta_bias, lane)), s.least_step, s.most_step);
    }
  return out;
}
}  // namespace

namespace {
/// Every vector of so many numbers ÷ its length.
void to_unit(Table& x, Index width, double times) {
  for (Index t = 0; t < x.rows; ++t)
    for (Index first = 0; first < x.columns; first += width) {
      double sum = 1e-6;
      for (Index i = first; i < first + width; ++i) sum += x.at(t, i) * x.at(t, i);
      for (Index i = first; i < first + width; ++i) x.at(t, i) *= times / std::sqrt(sum);
    }
}

/// The gated delta rule (Yang et al. 2025), head by head: S_t = e^(Δ a) S_(t−1) (I − β k kᵀ) + β v kᵀ, o = S q. What
/// v_s has become of in o_t is q_tᵀ Π_(s<r≤t) (e^(Δ_r a) (I − β_r k_r k_rᵀ)) k_s β_s.
Table through_delta(const ModelConfig& c, const RawLayer& layer, const Table& x, std::vector<Table>& patterns,
                    const std::stop_token& stop) {
  const RawStateSpace& w = layer.state_space;
  Given in = given(c, w, x, stop);
  const Index n = x.rows, lanes = c.dims.lanes, width = c.dims.d_inner / lanes, size = c.dims.d_state,
              heads = c.dims.heads_of_states(), together = lanes / heads;
  to_unit(in.b, size, 1), to_unit(in.c, size, 1 / std::sqrt(static_cast<double>(size)));
  const Table rates = product(x, w.beta_weight, {}, stop), gate = product(x, w.gate_weight, {}, stop);
  Table z(n, c.dims.d_inner);
  patterns.assign(static_cast<std::size_t>(heads), Table(n, n));
  for (Index lane = 0; lane < lanes; ++lane) {
    if (stop.stop_requested()) throw Cancelled();
    const Index key = lane / (lanes / c.dims.state_groups) * size;
    const double a = -std::exp(static_cast<double>(w.decay_log.at(lane, 0)));
    const auto beta = [&](Index t) { return c.state_space->most_rate / (1 + std::exp(-rates.at(t, lane))); };
    Table state(width, size);
    for (Index t = 0; t < n; ++t) {
      const double keep = std::exp(in.delta.at(t, lane) * a);
      for (Index p = 0; p < width; ++p) {
        double met = 0;
        for (Index i = 0; i < size; ++i) met += state.at(p, i) * in.b.at(t, key + i);
        for (Index i = 0; i < size; ++i) {
          double& s = state.at(p, i);
          s = keep * (s - beta(t) * met * in.b.at(t, key + i)) +
              beta(t) * in.x.at(t, lane * width + p) * in.b.at(t, key + i);
          z.at(t, lane * width + p) += s * in.c.at(t, key + i);
        }
      }
      std::vector<double> reach;  // q_tᵀ times the product so far
      for (Index i = 0; i < size; ++i) reach.push_back(in.c.at(t, key + i));
      for (Index s = t; s >= 0; --s) {
        double met = 0;
        for (Index i = 0; i < size; ++i) met += nth(reach, i) * in.b.at(s, key + i);
        nth(patterns, lane / together).at(t, s) += beta(s) * met / static_cast<double>(together);
        for (Index i = 0; i < size; ++i)
          nth(reach, i) = std::exp(in.delta.at(s, lane) * a) * (nth(reach, i) - beta(s) * met * in.b.at(s, key + i));
      }
    }
    normalize(c, NormKind::rms_norm, z, lane * width, width, w.norm_gain, {}, 0, c.state_space->gated_epsilon);
  }
  for (std::size_t i = 0; i < z.values.size(); ++i) z.values[i] *= activated(Activation::silu, gate.values[i], {});
  return product(z, layer.o_weight, layer.o_bias, stop);
}

/// The gated short convolution of LFM2: y = C ∘ (convolved (B ∘ x)), and of a head the mean of C_t w_(t−s) B_s over its
/// channels.
Table through_convolution(const ModelConfig& c, const RawLayer& layer, const Table& x, std::vector<Table>& patterns,
                          const std::stop_token& stop) {
  const RawStateSpace& w = layer.state_space;
  const Table all = product(x, w.x_weight, w.x_bias, stop);
  const Index inner = c.dims.d_inner, together = inner / c.dims.heads_of_states(), taps = w.convolution_weight.dim(1);
  Table product_in(x.rows, inner);
  for (Index t = 0; t < x.rows; ++t)
    for (Index i = 0; i < inner; ++i) product_in.at(t, i) = all.at(t, i) * all.at(t, 2 * inner + i);
  Table y = convolved(product_in, w.convolution_weight, w.convolution_bias);
  patterns.assign(static_cast<std::size_t>(c.dims.heads_of_states()), Table(x.rows, x.rows));
  for (Index t = 0; t < x.rows; ++t)
    for (Index i = 0; i < inner; ++i) {
      y.at(t, i) *= all.at(t, inner + i);
      for (Index s = std::max<Index>(0, t - taps + 1); s <= t; ++s)
        nth(patterns, i / together).at(t, s) += all.at(t, inner + i) *
                                                static_cast<double>(w.convolution_weight.at(i, taps - 1 - (t - s))) *
                                                all.at(s, i) / static_cast<double>(together);
    }
  return product(y, layer.o_weight, layer.o_bias, stop);
}
}  // namespace

Table through_states(const ModelConfig& c, const RawLayer& layer, const Table& x, std::vector<Table>& patterns,
                     const std::stop_token& stop) {
  const RawStateSpace& w = layer.state_space;
  if (c.state_space->lane == StateSpaceConfig::Lane::convolution)
    return through_convolution(c, layer, x, patterns, stop);
  if (c.state_space->lane == StateSpaceConfig::Lane::delta) return through_delta(c, layer, x, patterns, stop);
  const Given in = given(c, w, x, stop);
  const Index n = x.rows, lanes = c.dims.lanes, width = c.dims.d_inner / lanes, states = c.dims.d_state,
              heads = c.dims.heads_of_states(), together = lanes / heads;
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
    for (Index t = 0; w.d.defined() && t < n; ++t)
      for (Index i = 0; i < width; ++i) z.at(t, lane * width + i) += number(w.d, lane) * in.x.at(t, lane * width + i);
  }
  const Table gate = product(x, w.gate_weight, w.gate_bias, stop);
  const auto gate_it = [&] {
    for (std::size_t i = 0; i < z.values.size(); ++i) {
      const double g = gate.values[i];
      z.values[i] *= c.state_space->sigmoid_gate ? 1 / (1 + std::exp(-g)) : activated(Activation::silu, g, {});
    }
  };
  if (!c.state_space->norm_before_gate) gate_it();
  if (c.state_space->gated_norm) {
    const Index of_group = c.dims.d_inner / (c.state_space->one_norm ? 1 : c.dims.state_groups);
    for (Index first = 0; first < z.columns; first += of_group)
      normalize(c, NormKind::rms_norm, z, first, of_group, w.norm_gain, {}, first, c.state_space->gated_epsilon);
  }
  if (c.state_space->norm_before_gate) gate_it();
  return product(z, layer.o_weight, layer.o_bias, stop);
}

}  // namespace headscope::plain
