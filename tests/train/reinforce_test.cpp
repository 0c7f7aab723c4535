// REINFORCE: the mean of its estimate is the slope of the exact expectation, over logits and, through the whole model,
// over z.

#include "core/train/reinforce.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "core/analysis/singular_tuning.h"
#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "core/run/run_request.h"
#include "tests/support/paths.h"

namespace headscope::reinforce_test {

using doctest::Approx;

namespace {

std::vector<double> softmax(const std::vector<double>& logits) {
  double sum = 0;
  std::vector<double> out;
  for (const double each : logits) sum += std::exp(each);
  for (const double each : logits) out.push_back(std::exp(each) / sum);
  return out;
}
/// −E[r] + λ KL(π′ ‖ π), written out over the whole vocabulary.
double exact(const std::vector<double>& logits, const std::vector<double>& plain, std::size_t right, double price) {
  const auto p = softmax(logits), q = softmax(plain);
  double out = 0;
  for (std::size_t j = 0; j < p.size(); ++j) out += p[j] * ((j == right ? -1 : 1) + price * std::log(p[j] / q[j]));
  return out;
}

struct Estimate {
  double sum = 0, squares = 0;
  int count = 0;
  void add(double value) { sum += value, squares += value * value, ++count; }
  double mean() const { return sum / count; }
  double error() const { return std::sqrt(std::max(squares / count - mean() * mean(), 0.0) / count); }
};

}  // namespace

TEST_CASE("over a vocabulary of four the mean estimate is the slope of the exact expectation") {
  const std::vector<double> logits = {0.3, -0.5, 1.1, 0}, plain = {0, 0.2, 0.5, -0.4};
  const Tensor now = Tensor::from({2, 4}, std::vector<float>{9, 9, 9, 9, 0.3f, -0.5f, 1.1f, 0}),
               before = Tensor::from({2, 4}, std::vector<float>{1, 2, 3, 4, 0, 0.2f, 0.5f, -0.4f});
  const std::vector<std::int32_t> targets = {-1, 3};
  for (const auto& [price, draws] : {std::pair{0.0, 1}, std::pair{0.7, 1}, std::pair{0.7, 5}}) {
    CAPTURE(price);
    CAPTURE(draws);
    Random random(5);
    std::vector<Estimate> found(4);
    Estimate reward, loss;
    RewardStep step;
    for (int draw = 0; draw < 40'000; ++draw) {
      const auto one = reward_loss(now, before, targets, price, draws, random, step);
      for (Index j = 0; j < 4; ++j) found[static_cast<std::size_t>(j)].add(static_cast<double>(one.slope.at(1, j)));
      CHECK(one.slope.at(0, 2) == 0);  // not counted
      reward.add(step.reward), loss.add(one.loss);
    }
    const auto p = softmax(logits), q = softmax(plain);
    double kl = 0, surrogate = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      kl += p[j] * std::log(p[j] / q[j]);
      surrogate += p[j] * std::log(p[j]) * (j == 3 ? -1 : 1);
    }
    CHECK(step.kl == Approx(kl).epsilon(1e-5));
    CHECK(step.right == Approx(p[3]).epsilon(1e-5));
    CHECK(std::abs(reward.mean() - (2 * p[3] - 1)) < 4 * reward.error());
    CHECK(std::abs(loss.mean() - (surrogate + price * kl)) < 4 * loss.error());
    for (std::size_t j = 0; j < 4; ++j) {
      auto up = logits, down = logits;
      up[j] += 1e-5, down[j] -= 1e-5;
      const double slope = (exact(up, plain, 3, price) - exact(down, plain, 3, price)) / 2e-5;
      CHECK(found[j].error() < 0.01);
      CHECK(std::abs(found[j].mean() - slope) < 4 * found[j].error() + 1e-6);
    }
  }
}

TEST_CASE("through the model: the mean estimate of a z is the slope of the expectation of runs with it scaled") {
  Backend backend(1);
  const auto folder = testing::reference("gpt2-random");
  const LoadedModel loaded = load_model(folder, backend);
  SingularLearner learner(Parameters::load(folder), {WeightMatrix::v}, {}, backend);
  SingularExpert z = learner.expert();
  z.parts[0].z[0] = 1.4, z.parts[1].z[1] = 0.6;
  learner.set_expert(z);
  const Batch batch = text_batch({3, 14, 15, 9});
  const double price = 0.5;
  const Tensor plain = run_batch(*loaded.model, batch, Ctx{.backend = backend}).logits;
  const auto expectation = [&](const SingularExpert& expert) {
    RunRequest request;
    request.model = folder, request.ids = {3, 14, 15, 9}, request.ids_are_whole = true;
    request.edits = expert_edits(expert);
    const auto trace = run(loaded, request, Ctx{backend});
    double out = 0;
    for (Index i = 0; i < 3; ++i) {
      std::vector<double> a, b;
      for (Index j = 0; j < plain.dim(1); ++j)
        a.push_back(static_cast<double>(trace->logits.at(i, j))), b.push_back(static_cast<double>(plain.at(i, j)));
      out += exact(a, b, static_cast<std::size_t>(batch.targets[static_cast<std::size_t>(i)]), price) / 3;
    }
    return out;
  };
  Random random(3);
  std::vector<Estimate> found(2);
  for (int draw = 0; draw < 3000; ++draw) {
    RewardStep step;
    double loss = 0;
    const auto slope = learner.gradient(batch, loss, {}, [&](const Tensor& logits) {
      return reward_loss(logits, plain, batch.targets, price, 2, random, step);
    });
    found[0].add(slope[0][0]), found[1].add(slope[1][1]);
  }
  for (std::size_t which : {0u, 1u}) {
    SingularExpert up = z, down = z;
    up.parts[which].z[which] += 0.02, down.parts[which].z[which] -= 0.02;
    const double slope = (expectation(up) - expectation(down)) / 0.04;
    CAPTURE(slope);
    CHECK(std::abs(slope) > 4 * found[which].error());  // so that a sign would be seen
    CHECK(std::abs(found[which].mean() - slope) < 4 * found[which].error() + 0.02 * std::abs(slope));
  }
}

TEST_CASE("rewards are learnt, a price keeps the expert near the model, and the seed decides the draws") {
  Backend backend(1);
  const auto folder = testing::reference("gpt2-random");
  const LoadedModel loaded = load_model(folder, backend);
  SingularLearner learner(Parameters::load(folder), {WeightMatrix::v, WeightMatrix::mlp_out}, {.rate = 0.05}, backend);
  Batch batch = text_batch({3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7});
  // What is right is what the model finds second best: a token that is hardly ever drawn teaches nothing.
  const Tensor plain = run_batch(*loaded.model, batch, Ctx{.backend = backend}).logits;
  for (std::size_t i = 0; i < 11; ++i) batch.targets[i] = top_next(plain.select(0, static_cast<Index>(i)), 2)[1].id;
  const auto learnt = [&](double price, std::uint64_t seed) {
    RewardLearner rewards(loaded.model, learner, {.price = price, .seed = seed}, backend);
    const RewardStep before = rewards.measure(batch);
    CHECK(before.kl == Approx(0).epsilon(1e-5));
    for (int step = 0; step < 60; ++step) {
      const RewardStep drawn = rewards.step(batch);
      CHECK(std::abs(drawn.reward) <= 1 + 1e-12);
    }
    const RewardStep after = rewards.measure(batch);
    CHECK(after.reward == Approx(2 * after.right - 1));
    if (price == 0) CHECK(after.right > before.right + 0.02);
    return after;
  };
  const RewardStep free = learnt(0, 1), dear = learnt(5, 1);
  CHECK(dear.kl < 0.5 * free.kl);
  CHECK(learnt(0, 1).right == free.right);
  CHECK(learnt(0, 2).right != free.right);
  CHECK_THROWS_AS(RewardLearner(loaded.model, learner, {.price = -1}, backend), Error);
  CHECK_THROWS_AS(RewardLearner(loaded.model, learner, {.draws = 0}, backend), Error);
}

}  // namespace headscope::reinforce_test
