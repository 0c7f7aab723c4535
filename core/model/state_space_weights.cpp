#include "core/model/state_space_weights.h"

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
}  // namespace

std::vector<Tensor> tensors_of(const RawStateSpace& s) {
  return {s.x_weight,       s.x_bias,      s.gate_weight, s.gate_bias,  s.convolution_weight, s.convolution_bias,
          s.select_weight,  s.step_weight, s.step_bias,   s.delta_bias, s.decay_log,          s.d,
          s.step_norm_gain, s.b_norm_gain, s.c_norm_gain, s.norm_gain};
}

std::vector<Tensor> norm_gains_of(const RawStateSpace& s) {
  return {s.step_norm_gain, s.b_norm_gain, s.c_norm_gain, s.norm_gain};
}

void read_state_space(WeightReader& reader, const std::string& at, const StateSpaceNames& names, const ModelConfig& c,
                      RawStateSpace& into) {
  const ModelDims& d = c.dims;
  const StateSpaceConfig& s = *c.state_space;
  read_in(reader, at + names.in, c, into);
  reader.take(at + names.convolution + ".weight", {d.convolved, 1, s.convolution}, [&](const Tensor& kernel) {
    into.convolution_weight = kernel.reshape({d.convolved, s.convolution});
  });
  if (s.convolution_bias) reader.take(at + names.convolution + ".bias", {d.convolved}, into.convolution_bias);
  if (s.lane == Lane::channel) {
    reader.take_transposed(at + names.select + ".weight", d.d_inner, s.step_rank + 2 * d.d_state, into.select_weight);
    if (s.select_norms) {
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
  reader.take(at + names.d, {d.lanes}, into.d);
  if (s.gated_norm) reader.take(at + names.norm + ".weight", {d.d_inner}, into.norm_gain);
}

}  // namespace headscope
