#include "core/analysis/state_steps.h"

#include <cmath>

#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
void check(const Model& model) {
  if (!model.config().dims.any_state_space())
    throw Error(model.config().name, "a model that mixes tokens by a state (mamba, mamba2, qwen3_next …)",
                "one with attention");
  if (model.config().dims.state_kind == StateKind::convolution)
    throw Error(model.config().name, "a model that mixes tokens by a state (mamba, mamba2, qwen3_next …)",
                "short convolutions", "these hold the last few tokens, whatever they are");
}

double norm_of_row(const Tensor& values, Index token) {  // (token, group, state)
  double square = 0;
  for (Index g = 0; g < values.dim(1); ++g)
    for (Index i = 0; i < values.dim(2); ++i) square += std::pow(static_cast<double>(values.at(token, g, i)), 2);
  return std::sqrt(square);
}

/// RMS over the channels of a lane.
double size_of_lane(const Tensor& x, Index token, Index lane, Index width) {
  double square = 0;
  for (Index i = lane * width; i < (lane + 1) * width; ++i)
    square += std::pow(static_cast<double>(x.at(token, i)), 2) / static_cast<double>(width);
  return std::sqrt(square);
}
}  // namespace

std::set<SiteKind> state_step_sites(const Model& model) {
  check(model);
  std::set<SiteKind> sites{SiteKind::mixer_x, SiteKind::mixer_delta, SiteKind::mixer_b, SiteKind::mixer_c};
  if (model.config().dims.state_kind == StateKind::delta) sites.insert(SiteKind::mixer_beta);
  return sites;
}

std::vector<StateSteps> read_state_steps(const Model& model, const Trace& trace) {
  check(model);
  const ModelWeights weights = model.weights();
  std::vector<StateSteps> out;
  for (int layer = 0; layer < model.config().dims.layers; ++layer) {
    if (!model.config().dims.state_space(layer)) continue;
    StateSteps& steps = out.emplace_back();
    steps.layer = layer;
    steps.delta = need(trace, {SiteKind::mixer_delta, layer});
    const Tensor &x = need(trace, {SiteKind::mixer_x, layer}), &b = need(trace, {SiteKind::mixer_b, layer}),
                 &c = need(trace, {SiteKind::mixer_c, layer}), &log = nth(weights.blocks, layer).decay_log;
    const Tensor rates =
        model.config().dims.state_kind == StateKind::delta ? need(trace, {SiteKind::mixer_beta, layer}) : steps.delta;
    const Index tokens = steps.delta.dim(0), lanes = steps.delta.dim(1), states = log.dim(1);
    steps.kept = Tensor::zeros(steps.delta.shape());
    steps.written = Tensor::zeros(steps.delta.shape());
    for (Index t = 0; t < tokens; ++t) {
      for (Index lane = 0; lane < lanes; ++lane) {
        const auto step = static_cast<double>(steps.delta.at(t, lane));
        double kept = 0;
        for (Index i = 0; i < states; ++i)
          kept += std::exp(-step * std::exp(static_cast<double>(log.at(lane, i)))) / static_cast<double>(states);
        steps.kept.ref(t, lane) = static_cast<float>(kept);
        steps.written.ref(t, lane) =
            static_cast<float>(static_cast<double>(rates.at(t, lane)) * size_of_lane(x, t, lane, x.dim(1) / lanes));
      }
      steps.b.push_back(norm_of_row(b, t));
      steps.c.push_back(norm_of_row(c, t));
    }
  }
  return out;
}

double lane_mean(const Tensor& values, Index token) {
  double sum = 0;
  for (Index lane = 0; lane < values.dim(1); ++lane) sum += static_cast<double>(values.at(token, lane));
  return sum / static_cast<double>(values.dim(1));
}

}  // namespace headscope
