#include "core/train/adapted_matrices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "core/tensor/tape.h"

namespace headscope {

AdaptedMatrices::AdaptedMatrices(Parameters parameters, const std::vector<WeightMatrix>& matrices, Backend& backend,
                                 const std::string& where)
    : backend_(backend), parameters_(std::move(parameters)), model_(parameters_.trainable_model(backend)) {
  for (int layer = 0; layer < model_->config().dims.layers; ++layer)
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const Tensor view = model_->projection(layer, matrices[i]).weight;
      const auto before = matrices.begin() + static_cast<std::ptrdiff_t>(i);
      if (!view.defined() || std::find(matrices.begin(), before, matrices[i]) != before) continue;
      all_.push_back({layer, matrices[i], view, view.copy()});
    }
  if (all_.empty()) throw Error(where, "matrices that the model has", "none of those asked for");
}

void AdaptedMatrices::write(std::size_t which, const Tensor& weight) {
  Tensor& view = all_[which].view;
  for (Index row = 0; row < weight.dim(0); ++row)
    for (Index column = 0; column < weight.dim(1); ++column) view.ref(row, column) = weight.at(row, column);
}

double AdaptedMatrices::loss(const Batch& batch, std::stop_token stop) const {
  return backend_.cross_entropy(logits(batch, stop), batch.targets).nats;
}

Tensor AdaptedMatrices::logits(const Batch& batch, std::stop_token stop) const {
  return run_batch(*model_, batch, Ctx{.backend = backend_, .stop = stop}).logits;
}

std::vector<double> AdaptedMatrices::nats(const Batch& batch, std::stop_token stop) const {
  const Tensor all = logits(batch, stop);
  std::vector<double> out(static_cast<std::size_t>(batch.sequences), 0.0);
  for (std::size_t i = 0; i < batch.targets.size(); ++i)
    if (batch.targets[i] >= 0)
      out[i / static_cast<std::size_t>(batch.length)] +=
          next_token_loss(all.select(0, static_cast<Index>(i)), batch.targets[i]);
  return out;
}

std::vector<Tensor> AdaptedMatrices::gradients(const Batch& batch, double& loss, std::stop_token stop,
                                               const LossOfLogits& of) const {
  Tape tape(backend_);
  for (const Each& each : all_) tape.watch(each.view);
  const ForwardResult result = run_batch(*model_, batch, Ctx{.backend = backend_, .stop = stop, .tape = &tape});
  Tensor output, slope;
  if (of) {
    const LogitLoss found = of(result.logits);
    loss = found.loss, output = result.logits, slope = found.slope;
  } else {
    const Backend::Recording recording(backend_, &tape);
    const Backend::Loss mean = backend_.cross_entropy(result.logits, batch.targets);
    loss = mean.nats, output = mean.mean, slope = Tensor::full({1}, 1.0f);
  }
  if (!std::isfinite(loss))
    throw Error(parameters_.config().name + ": loss", "a finite number", fmt::format("{}", loss),
                "a smaller rate may help");
  tape.backward(output, slope);
  std::vector<Tensor> out;
  for (const Each& each : all_) out.push_back(tape.gradient(each.view));
  if (stop.stop_requested()) throw Cancelled();
  return out;
}

void Adam::step(std::span<const std::span<double>> values, const std::vector<std::vector<double>>& gradients) {
  if (first_.empty()) {
    for (const std::span<double> each : values) first_.emplace_back(each.size(), 0.0);
    second_ = first_;
  }
  ++steps_;
  const double first_whole = 1 - std::pow(settings_.beta1, static_cast<double>(steps_)),
               second_whole = 1 - std::pow(settings_.beta2, static_cast<double>(steps_));
  for (std::size_t list = 0; list < values.size(); ++list)
    for (std::size_t i = 0; i < values[list].size(); ++i) {
      const double g = gradients[list][i];
      double &m = first_[list][i], &v = second_[list][i];
      m = settings_.beta1 * m + (1 - settings_.beta1) * g;
      v = settings_.beta2 * v + (1 - settings_.beta2) * g * g;
      values[list][i] -= settings_.rate * (m / first_whole) / (std::sqrt(v / second_whole) + settings_.epsilon);
    }
}

void Adam::restart() {
  first_.clear(), second_.clear(), steps_ = 0;
}

}  // namespace headscope
