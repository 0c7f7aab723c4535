#include "core/model/multipliers.h"

#include <initializer_list>

#include "core/model/stored_layouts.h"
#include "core/model/weight_reader.h"

namespace headscope {

namespace {
/// What makes channels, B and C of a state space, side by side.
void multiply_channels(const ModelConfig& c, RawStateSpace& s) {
  const Multipliers& m = c.multipliers;
  if (m.state_x == 1 && m.state_b == 1 && m.state_c == 1) return;
  const Index inner = c.dims.d_inner, states = Index{c.dims.state_groups} * c.dims.d_state;
  Tensor by = Tensor::full({c.dims.convolved}, static_cast<float>(m.state_x));
  for (Index i = 0; i < states; ++i) {
    by.ref(inner + i) = static_cast<float>(m.state_b);
    by.ref(inner + states + i) = static_cast<float>(m.state_c);
  }
  for (Tensor* each : {&s.x_weight, &s.x_bias})
    if (each->defined()) *each = times_columns(*each, by);
}
}  // namespace

void multiply(const ModelConfig& c, RawLayer& raw) {
  const Multipliers& m = c.multipliers;
  const auto scale = [](std::initializer_list<Tensor*> all, double by) {
    for (Tensor* each : all) *each = scaled_by(*each, by);
  };
  scale({&raw.v_weight, &raw.v_bias}, c.value_scale);
  if (m == Multipliers{}) return;
  RawStateSpace& s = raw.state_space;
  const bool states = s.x_weight.defined();
  scale({&raw.q_weight, &raw.v_weight}, m.attention_in);
  scale({&raw.k_weight}, m.attention_in * m.key);
  scale({&raw.k_bias}, m.key);
  scale({&raw.o_weight, &raw.o_bias}, states ? m.state_out : m.attention_out);
  scale({&s.x_weight}, m.state_in);
  scale({&s.gate_weight}, m.state_in * m.state_gate);
  scale({&s.gate_bias}, m.state_gate);
  scale({&s.step_weight}, m.state_in * m.state_step);
  scale({&s.step_bias}, m.state_step);
  if (states) multiply_channels(c, s);
  scale({&raw.gate_weight, &raw.gate_bias}, m.mlp_gate);
  scale({&raw.down_weight, &raw.down_bias}, m.mlp_out);
}

}  // namespace headscope
