#include "core/train/state_space_start.h"

#include <algorithm>
#include <cmath>

namespace headscope {

namespace {
void draw_uniform(Tensor weight, double bound, Random& random) {
  if (!weight.defined()) return;
  for (Index i = 0; i < weight.dim(0); ++i)
    for (Index j = 0; j < weight.dim(1); ++j) weight.ref(i, j) = static_cast<float>(bound * (2 * random.uniform() - 1));
}

void fill(Tensor vector, float value) {
  for (Index i = 0; vector.defined() && i < vector.dim(0); ++i) vector.ref(i) = value;
}

/// What softplus makes such a step of.
void draw_steps(Tensor bias, Random& random) {
  const double least = 0.001, most = 0.1;
  for (Index i = 0; i < bias.dim(0); ++i) {
    const double step = least * std::pow(most / least, random.uniform());
    bias.ref(i) = static_cast<float>(step + std::log(-std::expm1(-step)));
  }
}
}  // namespace

void draw_state_space(RawLayer& layer, const ModelConfig& config, Random& random) {
  RawStateSpace& s = layer.state_space;
  const auto spread = [](double inputs) { return 1 / std::sqrt(inputs); };
  const double width = spread(config.dims.d_model), inner = spread(config.dims.d_inner);
  const bool channels = config.state_space->lane == StateSpaceConfig::Lane::channel;
  draw_uniform(s.x_weight, width, random);
  draw_uniform(s.gate_weight, width, random);
  draw_uniform(s.convolution_weight, spread(config.state_space->convolution), random);
  draw_uniform(s.select_weight, inner, random);
  draw_uniform(s.step_weight, channels ? spread(config.state_space->step_rank) : width, random);
  if (s.beta_weight.defined()) draw_uniform(s.beta_weight, width, random);
  draw_uniform(layer.o_weight, inner / std::sqrt(config.dims.layers), random);
  draw_steps(s.delta_bias, random);
  for (Index i = 0; i < s.decay_log.dim(0); ++i)
    for (Index j = 0; j < s.decay_log.dim(1); ++j)
      s.decay_log.ref(i, j) =
          static_cast<float>(std::log(channels ? static_cast<double>(j + 1) : 1 + 15 * random.uniform()));
  if (s.d.defined()) fill(s.d, 1);
  fill(s.norm_gain, 1);
}

}  // namespace headscope
