// Low-rank adapters: their slopes are those of losses with a factor moved, they begin as nothing, and sums of them are
// sums of their products.

#include "core/train/low_rank_adapter.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/run/run_request.h"
#include "core/train/singular_expert.h"
#include "tests/support/paths.h"

namespace headscope::low_rank_adapter_test {

using doctest::Approx;

namespace {

const std::vector<std::int32_t> ids{3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7};

struct Bench {
  Backend backend{1};
  std::filesystem::path folder = testing::reference("gpt2-random");
  LowRankLearner learner(LowRankLearner::Settings settings = {.rate = 0.02}) {
    return LowRankLearner(Parameters::load(folder), {WeightMatrix::v, WeightMatrix::mlp_out}, settings, backend);
  }
  double plain() {
    const auto model = Model::load(folder, backend);
    const Batch batch = text_batch(ids);
    return backend.cross_entropy(run_batch(*model, batch, Ctx{.backend = backend}).logits, batch.targets).nats;
  }
};

void show_one(LowRankLearner& learner, const LowRankAdapter& adapter, double weight = 1) {
  const LowRankAdapter* const one[] = {&adapter};
  const double weights[] = {weight};
  learner.show(one, weights);
}

}  // namespace

TEST_CASE(
    "an adapter begins as nothing, with as many numbers as its factors have, and its slopes are those of losses") {
  Bench bench;
  LowRankLearner learner = bench.learner({.rate = 0.02, .rank = 2});
  // W_V 32 × 32, W_out 128 × 32, rank 2, two layers.
  CHECK(learner.adapter().numbers() == 2 * 2 * (32 + 32 + 128 + 32));
  const Batch batch = text_batch(ids);
  CHECK(learner.matrices().loss(batch) == Approx(bench.plain()).epsilon(1e-6));
  double variance = 0;
  for (const double each : learner.adapter().parts[1].a) variance += each * each / 256;
  CHECK(variance == Approx(1.0 / 128).epsilon(0.3));
  for (const double each : learner.adapter().parts[1].b) CHECK(each == 0);
  for (int step = 0; step < 5; ++step) learner.step(batch);
  double loss = 0;
  const LowRankLearner::Slopes slopes = learner.gradient(batch, loss);
  CHECK(loss == Approx(learner.matrices().loss(batch)).epsilon(1e-6));
  const LowRankAdapter learnt = learner.adapter();
  const auto loss_with = [&](std::size_t part, bool left, std::size_t i, double by) {
    LowRankAdapter moved = learnt;
    (left ? moved.parts[part].a : moved.parts[part].b)[i] += by;
    show_one(learner, moved);
    return learner.matrices().loss(batch);
  };
  for (std::size_t part = 0; part < 4; ++part)
    for (const bool left : {true, false})
      for (std::size_t i : {0u, 7u, 33u}) {
        CAPTURE(part);
        CAPTURE(left);
        const double slope = (loss_with(part, left, i, 0.02) - loss_with(part, left, i, -0.02)) / 0.04;
        CHECK((left ? slopes.a : slopes.b)[part][i] == Approx(slope).epsilon(0.03).scale(0.02));
      }
}

TEST_CASE("an adapter learns, is added with any weight, and starts anew the same; what makes no sense is refused") {
  Bench bench;
  LowRankLearner learner = bench.learner();
  const Batch batch = text_batch(ids);
  const double before = bench.plain();
  CHECK(learner.step(batch) == Approx(before).epsilon(1e-6));
  for (int step = 1; step < 30; ++step) learner.step(batch);
  const LowRankAdapter one = learner.adapter();
  const double after = learner.matrices().loss(batch);
  CHECK(after < before - 0.3);
  show_one(learner, one, 0);
  CHECK(learner.matrices().loss(batch) == Approx(before).epsilon(1e-6));
  // Twice a half is a whole; A B of two adapters is that of their factors side by side.
  const LowRankAdapter* const both[] = {&one, &one};
  const double halves[] = {0.5, 0.5};
  learner.show(both, halves);
  CHECK(learner.matrices().loss(batch) == Approx(after).epsilon(1e-5));
  learner.restart();
  CHECK(learner.matrices().loss(batch) == Approx(before).epsilon(1e-6));
  for (int step = 0; step < 30; ++step) learner.step(batch);
  CHECK(learner.adapter().parts[2].a == one.parts[2].a);
  CHECK_FALSE(bench.learner({.seed = 2}).adapter().parts[0].a == bench.learner().adapter().parts[0].a);
  CHECK_THROWS_AS(bench.learner({.rank = 0}), Error);
  CHECK_THROWS_AS(bench.learner({.rank = 33}), Error);
  CHECK_THROWS_AS(bench.learner({.rate = 0}), Error);
  CHECK_THROWS_AS(LowRankLearner(Parameters::load(testing::source_dir() / "models" / "tiny-bert"), {WeightMatrix::v},
                                 {}, bench.backend),
                  Error);
}

}  // namespace headscope::low_rank_adapter_test
