#include "core/train/low_rank_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/tensor/matrices.h"
#include "core/train/singular_expert.h"

namespace headscope {

namespace {

using FactorMap = Eigen::Map<const RowMajor<double>>;

FactorMap left_of(const LowRankAdapter::Part& part, int rank) {
  return {part.a.data(), static_cast<Index>(part.a.size()) / rank, rank};
}
FactorMap right_of(const LowRankAdapter::Part& part, int rank) {
  return {part.b.data(), rank, static_cast<Index>(part.b.size()) / rank};
}
Parameters checked(Parameters parameters, const std::vector<WeightMatrix>& matrices) {
  SingularLearner::check(parameters.config(), matrices);
  return parameters;
}
std::vector<double> numbers_of(const RowMajor<double>& m) {
  return {m.data(), m.data() + m.size()};
}

}  // namespace

std::size_t LowRankAdapter::numbers() const {
  std::size_t out = 0;
  for (const Part& part : parts) out += part.a.size() + part.b.size();
  return out;
}

LowRankLearner::LowRankLearner(Parameters parameters, const std::vector<WeightMatrix>& matrices,
                               const Settings& settings, Backend& backend)
    : matrices_(checked(std::move(parameters), matrices), matrices, backend, "low-rank adapter"),
      settings_(settings),
      adam_({.rate = settings.rate}) {
  for (const AdaptedMatrices::Each& each : matrices_.all())
    if (settings.rank < 1 || settings.rank > std::min(each.own.dim(0), each.own.dim(1)))
      throw Error(fmt::format("low-rank adapter of {}", symbol_of(each.matrix)),
                  fmt::format("a rank of 1 … {}", std::min(each.own.dim(0), each.own.dim(1))),
                  std::to_string(settings.rank));
  if (!(settings.rate > 0)) throw Error("low-rank adapter", "a rate above 0", fmt::format("{:g}", settings.rate));
  restart();
}

void LowRankLearner::restart() {
  adapter_ = {settings_.rank, {}};
  Random random(settings_.seed);
  for (const AdaptedMatrices::Each& each : matrices_.all()) {
    LowRankAdapter::Part part{each.layer, each.matrix, {}, {}};
    const double deviation = 1 / std::sqrt(static_cast<double>(each.own.dim(0)));
    for (Index i = 0; i < each.own.dim(0) * settings_.rank; ++i)
      part.a.push_back(deviation * static_cast<double>(random.normal()));
    part.b.assign(static_cast<std::size_t>(each.own.dim(1) * settings_.rank), 0.0);
    adapter_.parts.push_back(std::move(part));
  }
  adam_.restart();
  const LowRankAdapter* const own[] = {&adapter_};
  const double one[] = {1};
  show(own, one);
}

void LowRankLearner::show(std::span<const LowRankAdapter* const> adapters, std::span<const double> weights) {
  for (std::size_t p = 0; p < matrices_.all().size(); ++p) {
    Eigen::MatrixXd made = matrix_of(matrices_.all()[p].own);
    for (std::size_t k = 0; k < adapters.size(); ++k) {
      const LowRankAdapter::Part& part = adapters[k]->parts[p];
      made += weights[k] * (left_of(part, adapters[k]->rank) * right_of(part, adapters[k]->rank));
    }
    matrices_.write(p, tensor_of(made));
  }
}

LowRankLearner::Slopes LowRankLearner::gradient(const Batch& batch, double& loss, std::stop_token stop) const {
  const std::vector<Tensor> slopes = matrices_.gradients(batch, loss, stop);
  Slopes out;
  for (std::size_t p = 0; p < slopes.size(); ++p) {
    const Eigen::MatrixXd g = matrix_of(slopes[p]);
    const LowRankAdapter::Part& part = adapter_.parts[p];
    out.a.push_back(numbers_of(g * right_of(part, adapter_.rank).transpose()));
    out.b.push_back(numbers_of(left_of(part, adapter_.rank).transpose() * g));
  }
  return out;
}

double LowRankLearner::step(const Batch& batch, std::stop_token stop) {
  double loss = 0;
  const Slopes slopes = gradient(batch, loss, stop);
  std::vector<std::span<double>> values;
  std::vector<std::vector<double>> gradients;
  for (std::size_t p = 0; p < adapter_.parts.size(); ++p) {
    values.emplace_back(adapter_.parts[p].a), gradients.push_back(slopes.a[p]);
    values.emplace_back(adapter_.parts[p].b), gradients.push_back(slopes.b[p]);
  }
  adam_.step(values, gradients);
  const LowRankAdapter* const own[] = {&adapter_};
  const double one[] = {1};
  show(own, one);
  return loss;
}

}  // namespace headscope
