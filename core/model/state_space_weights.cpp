#include "core/model/state_space_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace headscope {

namespace {
using Lane = StateSpaceConfig::Lane;

/// The matrix (d_model, …) of all that a layer reads of the stream, cut apart: channels and gate, or gate, channels
/// (with B and C) and steps.
void read_in(WeightReader& reader, const std::string& name, const ModelConfig& c, RawStateSpace& into) {
  const ModelDims& d = c.dims;
  const bool heads = c.state_space->lane == Lane::head;
  const Index gate = heads ? 0 : d.convolved, x = heads ? d.d_inner : 0, step = x + d.convolved,
              all = Index{d.d_inner} + d.convolved + (heads ? d.lanes : 0);
  const auto cut = [&](const Tensor& whole, int axis, Tensor& to_x, Tensor& to_gate, Tensor& to_step) {
    if (!whole.defined()) return;
    to_x = whole.slice(axis, x, x + d.convolved);
    to_gate = whole.slice(axis, gate, gate + d.d_inner);
    if (heads) to_step = whole.slice(axis, step, all);
  };
  Tensor weight, bias;
  reader.take_transposed(name + ".weight", d.d_model, all, weight);
  if (c.state_space->bias) reader.take(name + ".bias", {all}, bias);
  cut(weight, 1, into.x_weight, into.gate_weight, into.step_weight);
  cut(bias, 0, into.x_bias, into.gate_bias, into.step_bias);
}
/// The ranges of columns side by side.
Tensor gathered(const Tensor& x, const std::vector<std::pair<Index, Index>>& ranges) {
  std::vector<Index> columns;
  for (const auto& [begin, end] : ranges)
    for (Index i = begin; i < end; ++i) columns.push_back(i);
  return x.transpose(0, 1).rows(columns).transpose(0, 1);  // columns are rows of what is stored
}

/// Rows of all below each other, in fresh storage; undefined where one is.
Tensor stacked(const std::vector<Tensor>& parts) {
  Index rows = 0, width = 0;
  for (const Tensor& part : parts) {
    if (!part.defined()) return {};
    rows += part.dim(0), width = part.dim(1);
  }
  Tensor out = Tensor::uninitialized({rows, width});
  float* to = out.mutable_data();
  for (const Tensor& part : parts) {
    const Tensor numbers = part.packed();
    to = std::copy_n(numbers.data(), numbers.size(), to);
  }
  return out;
}

/// What a layer of the delta rule reads of the stream.
void read_delta_in(WeightReader& reader, const std::string& at, const StateSpaceNames& names, const ModelConfig& c,
                   RawStateSpace& into) {
  const ModelDims& d = c.dims;
  if (names.grouped.empty()) {
    const Index keys = Index{d.state_groups} * d.d_state;
    Tensor q, k, v;
    if (names.q.empty()) {
      reader.take_transposed(at + names.qkv + ".weight", d.d_model, d.convolved, into.x_weight);
    } else {
      reader.take(at + names.q + ".weight", {keys, d.d_model}, q);
      reader.take(at + names.k + ".weight", {keys, d.d_model}, k);
      reader.take(at + names.v + ".weight", {d.d_inner, d.d_model}, v);
      if (const Tensor all = stacked({q, k, v}); all.defined()) into.x_weight = all.transpose(0, 1);
    }
    reader.take_transposed(at + names.gate + ".weight", d.d_model, d.d_inner, into.gate_weight);
    reader.take_transposed(at + names.rate + ".weight", d.d_model, d.lanes, into.beta_weight);
    reader.take_transposed(at + names.steps + ".weight", d.d_model, d.lanes, into.step_weight);
    return;
  }
  const Index groups = d.state_groups, own = d.lanes / groups, values = d.d_inner / groups,
              all = 2 * Index{d.d_state} + 2 * values;
  Tensor whole, rates;
  reader.take_transposed(at + names.grouped + ".weight", d.d_model, groups * all, whole);
  reader.take_transposed(at + names.grouped_rates + ".weight", d.d_model, 2 * Index{d.lanes}, rates);
  const auto part = [&](Index begin, Index width, std::vector<std::pair<Index, Index>>& ranges) {
    for (Index g = 0; g < groups; ++g) ranges.emplace_back(g * all + begin, g * all + begin + width);
  };
  std::vector<std::pair<Index, Index>> convolved, gate, rate, steps;
  part(0, d.d_state, convolved), part(d.d_state, d.d_state, convolved), part(2 * d.d_state, values, convolved);
  part(2 * d.d_state + values, values, gate);
  for (Index g = 0; g < groups; ++g) {
    rate.emplace_back(2 * g * own, (2 * g + 1) * own);
    steps.emplace_back((2 * g + 1) * own, (2 * g + 2) * own);
  }
  if (whole.defined()) into.x_weight = gathered(whole, convolved), into.gate_weight = gathered(whole, gate);
  if (rates.defined()) into.beta_weight = gathered(rates, rate), into.step_weight = gathered(rates, steps);
}

/// ln of what a head decays by with each token, as ALiBi has slopes, less so in later layers: 2^(−8 (h + 1) ÷ heads)
/// (1 − layer ÷ (layers − 1) + 1e-5).
Tensor steady_decays(const ModelConfig& c, int layer) {
  const double less = 1 - layer / (c.dims.layers - 1 + 1e-5) + 1e-5;
  Tensor logs = Tensor::uninitialized({c.dims.lanes, 1});
  for (int lane = 0; lane < c.dims.lanes; ++lane)
    logs.ref(lane, 0) = static_cast<float>(-8.0 * (lane + 1) / c.dims.lanes * std::log(2.0) + std::log(less));
  return logs;
}

void read_steady(WeightReader& reader, const std::string& at, const StateSpaceNames& names, const ModelConfig& c,
                 int layer, RawStateSpace& into) {
  const ModelDims& d = c.dims;
  const Index width = d.d_inner / d.lanes;
  Tensor whole;
  reader.take_transposed(at + names.qkv + ".weight", d.d_model, d.convolved, whole);
  if (whole.defined()) {
    std::vector<std::pair<Index, Index>> ranges;  // all values, all keys, all queries
    for (const Index part : {2, 1, 0})
      for (Index lane = 0; lane < d.lanes; ++lane)
        ranges.emplace_back((3 * lane + part) * width, (3 * lane + part + 1) * width);
    into.x_weight = gathered(whole, ranges);
  }
  reader.take_transposed(at + names.gate + ".weight", d.d_model, d.d_inner, into.gate_weight);
  into.decay_log = steady_decays(c, layer);
  Tensor slopes;
  reader.take_buffer(at + names.slopes, {d.lanes, 1, 1}, slopes);
  for (Index lane = 0; slopes.defined() && lane < d.lanes; ++lane)
    into.decay_log.ref(lane, 0) = std::log(slopes.at(lane, 0, 0));
  reader.take(at + names.norm + ".weight", {d.d_inner}, into.norm_gain);
}
}  // namespace

std::vector<Tensor> tensors_of(const RawStateSpace& s) {
  return {s.x_weight,       s.x_bias,      s.gate_weight, s.gate_bias,  s.convolution_weight, s.convolution_bias,
          s.select_weight,  s.step_weight, s.step_bias,   s.delta_bias, s.decay_log,          s.d,
          s.step_norm_gain, s.b_norm_gain, s.c_norm_gain, s.norm_gain,  s.beta_weight};
}

std::vector<Tensor> norm_gains_of(const RawStateSpace& s) {
  return {s.step_norm_gain, s.b_norm_gain, s.c_norm_gain, s.norm_gain};
}

void read_state_space(WeightReader& reader, const std::string& at, const StateSpaceNames& names, const ModelConfig& c,
                      int layer, RawStateSpace& into) {
  const ModelDims& d = c.dims;
  const StateSpaceConfig& s = *c.state_space;
  if (s.steady) return read_steady(reader, at, names, c, layer, into);
  const bool delta = s.lane == Lane::delta, convolves = s.lane == Lane::convolution;
  if (convolves) {
    reader.take_transposed(at + names.in + ".weight", d.d_model, 3 * Index{d.d_inner}, into.x_weight);
    if (s.bias) reader.take(at + names.in + ".bias", {3 * Index{d.d_inner}}, into.x_bias);
  } else if (delta)
    read_delta_in(reader, at, names, c, into);
  else
    read_in(reader, at + names.in, c, into);
  const auto convolution = [&](const std::string& name, Index channels, Tensor& kernel_of) {
    reader.take(at + name + ".weight", {channels, 1, s.convolution}, [&](const Tensor& kernel) {
      kernel_of = kernel.reshape({channels, s.convolution});
    });
  };
  if (!names.q_convolution.empty() && !reader.contains(at + names.convolution + ".weight") &&
      reader.contains(at + names.q_convolution + ".weight")) {
    const auto parts = [&](Index of_q, Index of_k) {
      Tensor q, k, v;
      convolution(names.q_convolution, of_q, q), convolution(names.k_convolution, of_k, k);
      convolution(names.v_convolution, d.convolved - of_q - of_k, v);
      into.convolution_weight = stacked({q, k, v});
    };
    const Index keys = Index{d.state_groups} * d.d_state, third = (d.convolved + 2) / 3;
    try {
      parts(keys, keys);
    } catch (const Error&) {  // the library writes thirds of all of them, whatever is whose
      if (third == keys) throw;
      try {
        parts(third, third);
      } catch (const Error&) {
        parts(keys, keys);  // the error that tells what should be there
      }
    }
  } else {
    convolution(names.convolution, d.convolved, into.convolution_weight);
  }
  if (s.convolution_bias) reader.take(at + names.convolution + ".bias", {d.convolved}, into.convolution_bias);
  if (convolves) return;
  if (s.lane == Lane::channel) {
    reader.take_transposed(at + names.select + ".weight", d.d_inner, s.step_rank + 2 * d.d_state, into.select_weight);
    if (s.select_norms && s.select_gains) {
      reader.take(at + names.step_norm + ".weight", {s.step_rank}, into.step_norm_gain);
      reader.take(at + names.b_norm + ".weight", {d.d_state}, into.b_norm_gain);
      reader.take(at + names.c_norm + ".weight", {d.d_state}, into.c_norm_gain);
    }
    reader.take_transposed(at + names.step + ".weight", s.step_rank, d.lanes, into.step_weight);
    reader.take(at + names.step + ".bias", {d.lanes}, into.delta_bias);
    reader.take(at + names.decay_log, {d.lanes, d.d_state}, into.decay_log);
  } else {
    reader.take(at + names.delta_bias, {d.lanes}, into.delta_bias);
    reader.take(at + names.decay_log, {d.lanes}, [&](const Tensor& logs) {
      into.decay_log = logs.reshape({d.lanes, 1});
    });
  }
  if (!delta) reader.take(at + names.d, {d.lanes}, into.d);
  if (s.gated_norm) reader.take(at + names.norm + ".weight", {delta ? d.d_inner / d.lanes : d.d_inner}, into.norm_gain);
}

}  // namespace headscope
