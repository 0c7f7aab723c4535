#include "core/train/singular_expert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/metrics/next_token.h"
#include "core/model/cut_products.h"
#include "core/tensor/matrices.h"
#include "core/tensor/tape.h"

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

struct SingularLearner::Matrix {
  Tensor view;                    // in the model's parameters, (in, out): what passes read
  Tensor own;                     // as it was
  SingularDirections directions;  // of that
};

namespace {
std::string place_of(const ModelConfig& config) {
  return config.name + ": singular values";
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
      // As it was, and its gradient; the directions.
      kept += 2 * static_cast<double>(weight.size()) + shorter * shorter;
      // In double, while it is decomposed: the matrix, what is decomposed and what comes out.
      largest = std::max(largest, 2 * (static_cast<double>(weight.size()) + 2 * shorter * shorter));
    }
  const double rows = double(tokens) * texts, layers = m.layers, queries = double(m.heads) * m.d_head,
               keys = double(m.kv_heads) * (m.d_head + m.value_width());
  const double row = 2.0 * m.d_model + (m.state_space() ? 3.0 * m.d_inner : queries + keys + m.d_mlp);
  constexpr double bytes = sizeof(float);
  return {.weights = bytes * (static_cast<double>(model.info().parameters) + kept + largest),
          .activations = bytes * layers * rows * row,
          .attention = m.state_space() ? 0 : bytes * layers * m.heads * rows * tokens,
          .logits = 2 * bytes * rows * m.vocab};
}

SingularLearner::SingularLearner(Parameters parameters, const std::vector<WeightMatrix>& matrices,
                                 const Settings& settings, Backend& backend, std::stop_token stop)
    : settings_(settings), backend_(backend), parameters_(std::move(parameters)) {
  const std::string where = place_of(parameters_.config());
  check(parameters_.config(), matrices);
  if (!(settings.rate > 0) || !(settings.most > 1))
    throw Error(where, "a rate above 0 and a largest z above 1",
                fmt::format("{:g} and {:g}", settings.rate, settings.most));
  model_ = parameters_.trainable_model(backend);
  for (int layer = 0; layer < model_->config().dims.layers; ++layer)
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const WeightMatrix matrix = matrices[i];
      const Tensor view = model_->projection(layer, matrix).weight;
      const auto before = matrices.begin() + static_cast<std::ptrdiff_t>(i);
      if (!view.defined() || std::find(matrices.begin(), before, matrix) != before) continue;
      if (stop.stop_requested()) throw Cancelled();
      Matrix each{view, view.copy(), singular_directions(view)};
      expert_.parts.push_back({layer, matrix, std::vector<double>(each.directions.values.size(), 1.0)});
      matrices_.push_back(std::move(each));
    }
  if (matrices_.empty()) throw Error(where, "matrices that the model has", "none of those asked for");
  for (const SingularExpert::Part& part : expert_.parts) first_.emplace_back(part.z.size(), 0.0);
  second_ = first_;
}

void SingularLearner::restart() {
  for (SingularExpert::Part& part : expert_.parts) std::ranges::fill(part.z, 1.0);
  for (std::vector<std::vector<double>>* moments : {&first_, &second_})
    for (std::vector<double>& each : *moments) std::ranges::fill(each, 0.0);
  steps_ = 0;
  write();
}

SingularLearner::~SingularLearner() = default;

void SingularLearner::set_expert(const SingularExpert& expert) {
  expert_ = expert;
  write();
}

void SingularLearner::write() {
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    Matrix& each = matrices_[i];
    const Tensor scaled = scaled_singular(each.own, each.directions, expert_.parts[i].z);
    for (Index row = 0; row < scaled.dim(0); ++row)
      for (Index column = 0; column < scaled.dim(1); ++column) each.view.ref(row, column) = scaled.at(row, column);
  }
}

double SingularLearner::loss(const Batch& batch, std::stop_token stop) const {
  const ForwardResult result = run_batch(*model_, batch, Ctx{.backend = backend_, .stop = stop});
  return backend_.cross_entropy(result.logits, batch.targets).nats;
}

Tensor SingularLearner::logits(const Batch& batch, std::stop_token stop) const {
  return run_batch(*model_, batch, Ctx{.backend = backend_, .stop = stop}).logits;
}

std::vector<double> SingularLearner::nats(const Batch& batch, std::stop_token stop) const {
  const Tensor all = logits(batch, stop);
  std::vector<double> out(static_cast<std::size_t>(batch.sequences), 0.0);
  for (std::size_t i = 0; i < batch.targets.size(); ++i)
    if (batch.targets[i] >= 0)
      out[i / static_cast<std::size_t>(batch.length)] +=
          next_token_loss(all.select(0, static_cast<Index>(i)), batch.targets[i]);
  return out;
}

std::vector<std::vector<double>> SingularLearner::gradient(const Batch& batch, double& loss, std::stop_token stop,
                                                           const LossOfLogits& of) const {
  Tape tape(backend_);
  for (const Matrix& each : matrices_) tape.watch(each.view);
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
  std::vector<std::vector<double>> out;
  for (const Matrix& each : matrices_) {
    // With σ_i u_i v_iᵀ = u_i u_iᵀ W: ⟨G, u_i u_iᵀ W⟩ = (u_iᵀ G) · (u_iᵀ W); from the right likewise.
    const Eigen::MatrixXd g = matrix_of(tape.gradient(each.view)), w = matrix_of(each.own),
                          directions = matrix_of(each.directions.directions);
    const Eigen::VectorXd dz =
        each.directions.of_rows
            ? Eigen::VectorXd((directions.transpose() * g).cwiseProduct(directions.transpose() * w).rowwise().sum())
            : Eigen::VectorXd((g * directions).cwiseProduct(w * directions).colwise().sum().transpose());
    out.emplace_back(dz.begin(), dz.end());
  }
  if (stop.stop_requested()) throw Cancelled();
  return out;
}

double SingularLearner::step(const Batch& batch, std::stop_token stop, const LossOfLogits& of) {
  double loss = 0;
  const std::vector<std::vector<double>> gradients = gradient(batch, loss, stop, of);
  ++steps_;
  const double first_whole = 1 - std::pow(settings_.beta1, static_cast<double>(steps_)),
               second_whole = 1 - std::pow(settings_.beta2, static_cast<double>(steps_));
  for (std::size_t part = 0; part < gradients.size(); ++part)
    for (std::size_t i = 0; i < gradients[part].size(); ++i) {
      const double g = gradients[part][i];
      double &m = first_[part][i], &v = second_[part][i], &z = expert_.parts[part].z[i];
      m = settings_.beta1 * m + (1 - settings_.beta1) * g;
      v = settings_.beta2 * v + (1 - settings_.beta2) * g * g;
      z -= settings_.rate * (m / first_whole) / (std::sqrt(v / second_whole) + settings_.epsilon);
      z = std::clamp(z, -settings_.most, settings_.most);
    }
  write();
  return loss;
}

}  // namespace headscope
