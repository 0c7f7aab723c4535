#include "core/train/singular_expert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/model/cut_products.h"

namespace headscope {

std::size_t SingularExpert::numbers() const {
  std::size_t out = 0;
  for (const Part& part : parts) out += part.z.size();
  return out;
}

Batch text_batch(const std::vector<std::int32_t>& tokens) {
  Batch batch{1, static_cast<int>(tokens.size()), tokens, {}};
  if (!tokens.empty()) batch.targets.assign(tokens.begin() + 1, tokens.end()), batch.targets.push_back(-1);
  return batch;
}

Batch rows_batch(std::span<const TextRow> rows) {
  std::size_t longest = 0;
  for (const TextRow& row : rows) longest = std::max(longest, row.ids.size());
  Batch batch{static_cast<int>(rows.size()), static_cast<int>(longest), {}, {}};
  for (const TextRow& row : rows)
    for (std::size_t i = 0; i < longest; ++i) {
      batch.tokens.push_back(i < row.ids.size() ? row.ids[i] : row.ids.front());
      const bool counted = i + 1 < row.ids.size() && i + 1 >= static_cast<std::size_t>(row.from);
      batch.targets.push_back(counted ? row.ids[i + 1] : -1);
    }
  return batch;
}

namespace {
std::string place_of(const ModelConfig& config) {
  return config.name + ": singular values";
}
/// What can be learnt, before anything is made of it.
Parameters learnable(Parameters parameters, const std::vector<WeightMatrix>& matrices,
                     const SingularLearner::Settings& settings) {
  SingularLearner::check(parameters.config(), matrices);
  if (!(settings.rate > 0) || !(settings.most > 1))
    throw Error(place_of(parameters.config()), "a rate above 0 and a largest z above 1",
                fmt::format("{:g} and {:g}", settings.rate, settings.most));
  return parameters;
}
}  // namespace

void SingularLearner::check(const ModelConfig& config, const std::vector<WeightMatrix>& matrices) {
  const std::string where = place_of(config);
  if (config.objective() != Objective::next_token || config.encoder)
    throw Error(where, "a decoder, which tells every token from those before it", "another kind of model");
  for (const WeightMatrix matrix : matrices) check_uncut(config, matrix, where);
}

TrainingMemory SingularLearner::memory(const Model& model, const std::vector<WeightMatrix>& matrices, int tokens,
                                       int texts) {
  const ModelDims& m = model.config().dims;
  double kept = 0, largest = 0;
  for (int layer = 0; layer < m.layers; ++layer)
    for (const WeightMatrix matrix : std::set(matrices.begin(), matrices.end())) {
      const Tensor weight = model.projection(layer, matrix).weight;
      if (!weight.defined()) continue;
      const auto shorter = static_cast<double>(std::min(weight.dim(0), weight.dim(1)));
      // As it was, and its gradient; its parts, in double; the directions.
      kept += 4 * static_cast<double>(weight.size()) + shorter * shorter;
      // In double, while it is decomposed: the matrix, what is decomposed and what comes out.
      largest = std::max(largest, 2 * (static_cast<double>(weight.size()) + 2 * shorter * shorter));
    }
  const double rows = double(tokens) * texts, layers = m.layers;
  double row = 0;  // of all layers
  for (int layer = 0; layer < m.layers; ++layer) {
    const LayerWidths own = m.widths_of(layer);
    const double queries = double(m.heads) * own.d_head,
                 keys = double(own.kv_heads) * (own.d_head + (m.d_value > 0 ? m.d_value : own.d_head));
    row += 2.0 * m.d_model + (m.state_space() ? 3.0 * m.d_inner : queries + keys + own.d_mlp);
  }
  constexpr double bytes = sizeof(float);
  return {.weights = bytes * (static_cast<double>(model.info().parameters) + kept + largest),
          .activations = bytes * rows * row,
          .attention = m.state_space() ? 0 : bytes * layers * m.heads * rows * tokens,
          .logits = 2 * bytes * rows * m.vocab};
}

SingularLearner::SingularLearner(Parameters parameters, const std::vector<WeightMatrix>& matrices,
                                 const Settings& settings, Backend& backend, std::stop_token stop)
    : settings_(settings),
      matrices_(learnable(parameters, matrices, settings), matrices, backend, place_of(parameters.config())),
      adam_({.rate = settings.rate, .beta1 = settings.beta1, .beta2 = settings.beta2, .epsilon = settings.epsilon}) {
  for (const AdaptedMatrices::Each& each : matrices_.all()) {
    if (stop.stop_requested()) throw Cancelled();
    parts_.emplace_back(each.own);
    expert_.parts.push_back({each.layer, each.matrix, std::vector<double>(parts_.back().count(), 1.0)});
  }
}

void SingularLearner::restart() {
  for (SingularExpert::Part& part : expert_.parts) std::ranges::fill(part.z, 1.0);
  adam_.restart();
  write();
}

void SingularLearner::set_expert(const SingularExpert& expert) {
  expert_ = expert;
  write();
}

void SingularLearner::write() {
  for (std::size_t i = 0; i < parts_.size(); ++i) matrices_.write(i, parts_[i].scaled(expert_.parts[i].z));
}

std::vector<std::vector<double>> SingularLearner::gradient(const Batch& batch, double& loss, std::stop_token stop,
                                                           const LossOfLogits& of) const {
  const std::vector<Tensor> slopes = matrices_.gradients(batch, loss, stop, of);
  std::vector<std::vector<double>> out;
  for (std::size_t i = 0; i < slopes.size(); ++i) out.push_back(parts_[i].slopes(slopes[i]));
  return out;
}

double SingularLearner::step(const Batch& batch, std::stop_token stop, const LossOfLogits& of) {
  double loss = 0;
  const std::vector<std::vector<double>> gradients = gradient(batch, loss, stop, of);
  std::vector<std::span<double>> values;
  for (SingularExpert::Part& part : expert_.parts) values.emplace_back(part.z);
  adam_.step(values, gradients);
  for (SingularExpert::Part& part : expert_.parts)
    for (double& z : part.z) z = std::clamp(z, -settings_.most, settings_.most);
  write();
  return loss;
}

}  // namespace headscope
