#include "core/train/reinforce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/metrics/next_token.h"

namespace headscope {

namespace {

/// ln π′ and ln π of one row, and what does not depend on a draw.
struct RewardRow {
  std::vector<double> now, before;  // ln p
  double kl = 0, right = 0;
  RewardRow(const Tensor& logits, const Tensor& plain, Index row, std::int32_t target) {
    const Tensor a = logits.select(0, row), b = plain.select(0, row);
    const double all_a = log_sum_exp(a), all_b = log_sum_exp(b);
    for (Index j = 0; j < a.dim(0); ++j) {
      now.push_back(static_cast<double>(a.at(j)) - all_a);
      before.push_back(static_cast<double>(b.at(j)) - all_b);
      kl += std::exp(now.back()) * (now.back() - before.back());
    }
    right = std::exp(now[static_cast<std::size_t>(target)]);
  }
};

double counted_targets(std::span<const std::int32_t> targets) {
  return static_cast<double>(std::ranges::count_if(targets, [](std::int32_t each) { return each >= 0; }));
}

}  // namespace

SingularLearner::LogitLoss reward_loss(const Tensor& logits, const Tensor& plain, std::span<const std::int32_t> targets,
                                       double price, int draws, Random& random, RewardStep& step) {
  SingularLearner::LogitLoss out{0, Tensor::zeros({logits.dim(0), logits.dim(1)})};
  const double rows = counted_targets(targets);
  step = {};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    const RewardRow row(logits, plain, static_cast<Index>(i), targets[i]);
    step.kl += row.kl / rows, step.right += row.right / rows;
    out.loss += price * row.kl / rows;
    std::vector<double> slope(row.now.size());
    double all = 0;  // of the advantages
    for (int draw = 0; draw < draws; ++draw) {
      double left = random.uniform();
      std::size_t drawn = 0;
      while (drawn + 1 < row.now.size() && (left -= std::exp(row.now[drawn])) >= 0) ++drawn;
      const double reward = drawn == static_cast<std::size_t>(targets[i]) ? 1 : -1,
                   advantage = (reward - (2 * row.right - 1)) / draws;
      step.reward += reward / draws / rows;
      out.loss -= reward * row.now[drawn] / draws / rows;
      slope[drawn] -= advantage, all += advantage;
    }
    for (std::size_t j = 0; j < row.now.size(); ++j) {
      const double p = std::exp(row.now[j]);
      slope[j] += p * (all + price * (row.now[j] - row.before[j] - row.kl));
      out.slope.ref(static_cast<Index>(i), static_cast<Index>(j)) = static_cast<float>(slope[j] / rows);
    }
  }
  return out;
}

RewardLearner::RewardLearner(std::shared_ptr<const Model> plain, SingularLearner& learner, const Settings& settings,
                             Backend& backend)
    : plain_(std::move(plain)), learner_(learner), settings_(settings), backend_(backend), random_(settings.seed) {
  if (!(settings.price >= 0) || settings.draws < 1)
    throw Error("REINFORCE", "a price of leaving the model of at least 0, and at least one draw",
                fmt::format("{:g} and {}", settings.price, settings.draws));
  learner_.restart();
}

RewardStep RewardLearner::step(const Batch& batch, std::stop_token stop) {
  const Tensor plain = run_batch(*plain_, batch, Ctx{.backend = backend_, .stop = stop}).logits;
  RewardStep out;
  // A stop or an Error leaves the draws to the step that is taken again.
  Random random = random_;
  learner_.step(batch, stop, [&](const Tensor& logits) {
    return reward_loss(logits, plain, batch.targets, settings_.price, settings_.draws, random, out);
  });
  random_ = random;
  return out;
}

RewardStep RewardLearner::measure(const Batch& batch, std::stop_token stop) const {
  const Tensor plain = run_batch(*plain_, batch, Ctx{.backend = backend_, .stop = stop}).logits,
               logits = learner_.logits(batch, stop);
  RewardStep out;
  const double rows = counted_targets(batch.targets);
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    if (batch.targets[i] < 0) continue;
    const RewardRow row(logits, plain, static_cast<Index>(i), batch.targets[i]);
    out.kl += row.kl / rows, out.right += row.right / rows;
  }
  out.reward = 2 * out.right - 1;
  return out;
}

}  // namespace headscope
