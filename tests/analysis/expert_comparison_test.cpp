// Experts by reward beside experts by gradient, and experts composed beside adapters composed: what is told is what
// learners with those batches, and runs with those edits, give.

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/analysis/expert_composition.h"
#include "core/analysis/reward_tuning.h"
#include "core/analysis/singular_tuning.h"
#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::expert_comparison_test {

using doctest::Approx;

namespace {

struct Compared {
  Backend backend{1};
  std::filesystem::path folder = testing::source_dir() / "models" / "everyday-gpt2";
  LoadedModel loaded = load_model(folder, backend);
  SelfAdaptationAsked asked;
  Compared() {
    asked.model = folder;
    asked.counts = {.learn = 10, .shots = 1, .test = 4};
    asked.steps = 6, asked.batch = 4, asked.rate = 0.05;
    asked.tasks =
        drawn_tasks(Grammar::named("everyday", "test"), asked.counts, 1, [](const std::string&) { return true; });
    asked.tasks.resize(3);
  }
  template <class R>
  std::shared_ptr<const typename R::Result> through(R& run) {
    while (!run.finished()) run.step(Ctx{backend});
    CHECK(run.share() == 1);
    return run.result();
  }
  /// Nats per token of a task's test texts behind their prompts, in runs with these edits; with it Σ p(right) ÷ tokens.
  std::pair<double, double> loss(std::size_t task, const std::vector<Intervention>& edits) {
    double nats = 0, right = 0, tokens = 0;
    for (const std::string& text : asked.tasks[task].test) {
      RunRequest request;
      request.model = folder, request.text = text, request.edits = edits;
      const auto all = token_losses(*run(loaded, request, Ctx{backend}));
      for (std::size_t i = (all.size() + 1) / 2 - 1; i < all.size(); ++i)
        nats += all[i], right += std::exp(-all[i]), tokens += 1;
    }
    return {nats / tokens, right / tokens};
  }
};

}  // namespace

TEST_CASE("experts and adapters learn the same batches; what two of them are together is what their mixture gives") {
  Compared c;
  ExpertCompositionRun composing(c.loaded, c.asked, 1, 0.02);
  const auto found = c.through(composing);
  CHECK(found->expert_numbers == 1024);
  CHECK(found->adapter_numbers == 4 * (128 + 128 + 512 + 128));
  REQUIRE(found->experts.size() == 3);
  REQUIRE(found->adapters.size() == 3);
  REQUIRE(found->pairs.size() == 3);
  // The same by hand.
  const PreparedTasks prepared = prepare_tasks(c.loaded, c.asked, 2);
  std::vector<ExpertSet::Expert> experts;
  std::vector<LowRankAdapter> adapters;
  LowRankLearner low(Parameters::load(c.folder), c.asked.matrices, {.rate = 0.02}, c.backend);
  for (std::size_t k = 0; k < 3; ++k) {
    SingularLearner learner(Parameters::load(c.folder), c.asked.matrices, {.rate = 0.05}, c.backend);
    low.restart();
    for (std::size_t step = 0; step < 6; ++step) {
      const Batch batch = rows_batch(drawn_rows(prepared.rows[k].learn, c.asked, k, step));
      learner.step(batch), low.step(batch);
    }
    experts.push_back({"", "", as_written(learner.expert())});
    adapters.push_back(low.adapter());
  }
  const auto adapted = [&](std::vector<const LowRankAdapter*> of, std::vector<double> weights, std::size_t task) {
    low.show(of, weights);
    const Batch test = rows_batch(prepared.rows[task].test);
    return low.matrices().loss(test);
  };
  for (std::size_t t = 0; t < 3; ++t) {
    CHECK(found->model[t] == Approx(c.loss(t, {}).first).epsilon(1e-4));
    for (std::size_t k = 0; k < 3; ++k) {
      CHECK(found->experts[k][t] == Approx(c.loss(t, expert_edits(experts[k].z)).first).epsilon(1e-3));
      CHECK(found->adapters[k][t] == Approx(adapted({&adapters[k]}, {1}, t)).epsilon(1e-4));
    }
    if (t == 2) continue;  // six steps of four texts are too few for it
    CHECK(found->experts[t][t] < found->model[t] - 0.05);
    CHECK(found->adapters[t][t] < found->model[t] - 0.05);
  }
  const std::size_t firsts[] = {0, 0, 1}, seconds[] = {1, 2, 2};
  for (std::size_t p = 0; p < 3; ++p) {
    const ExpertComposition::Pair& pair = found->pairs[p];
    CHECK(pair.first == firsts[p]);
    CHECK(pair.second == seconds[p]);
    REQUIRE(pair.experts.size() == 4);
    for (std::size_t w : {1u, 3u}) {
      const auto [a, b] = composed_weights[w];
      const std::vector<ExpertSet::Expert> both{experts[pair.first], experts[pair.second]};
      const auto edits = expert_edits(mixed_expert(both, std::vector{a, b}));
      CHECK(pair.experts[w][0] == Approx(c.loss(pair.first, edits).first).epsilon(1e-3));
      CHECK(pair.experts[w][1] == Approx(c.loss(pair.second, edits).first).epsilon(1e-3));
      CHECK(pair.adapters[w][1] ==
            Approx(adapted({&adapters[pair.first], &adapters[pair.second]}, {a, b}, pair.second)).epsilon(1e-4));
    }
  }
  const HalfAndHalf mean = half_and_half(*found);
  double halves = 0, own = 0;
  for (const ExpertComposition::Pair& pair : found->pairs) {
    halves += pair.experts[1][0] + pair.experts[1][1];
    own += found->adapters[pair.first][pair.first] + found->adapters[pair.second][pair.second];
  }
  CHECK(mean.experts == Approx(halves / 6));
  CHECK(mean.own_adapter == Approx(own / 6));
  CHECK_THROWS_AS(ExpertCompositionRun(c.loaded, c.asked, 200, 0.02).step(Ctx{c.backend}), Error);
}

TEST_CASE("rewards and gradients learn the same batches of each task; what they came to is told of unseen texts") {
  Compared c;
  c.asked.tasks.resize(2);
  RewardTuningRun learning(c.loaded, c.asked, 0.2);
  const auto found = c.through(learning);
  REQUIRE(found->found.size() == 2);
  const PreparedTasks prepared = prepare_tasks(c.loaded, c.asked, 1);
  for (std::size_t t = 0; t < 2; ++t) {
    const RewardTuning::Task& task = found->found[t];
    CHECK(task.whole);
    REQUIRE(task.steps.size() == 6);
    REQUIRE(task.losses.size() == 6);
    SingularLearner learner(Parameters::load(c.folder), c.asked.matrices, {.rate = 0.05}, c.backend);
    CHECK(task.before.right == Approx(c.loss(t, {}).second).epsilon(1e-4));
    CHECK(task.before.kl == Approx(0).epsilon(1e-6));
    for (std::size_t step = 0; step < 6; ++step)
      CHECK(learner.step(rows_batch(drawn_rows(prepared.rows[t].learn, c.asked, t, step))) ==
            Approx(task.losses[step]).epsilon(1e-4));
    CHECK(task.taught.right == Approx(c.loss(t, expert_edits(as_written(learner.expert()))).second).epsilon(1e-3));
    RewardLearner rewards(c.loaded.model, learner, {.price = 0.2, .seed = 1 + t}, c.backend);
    for (std::size_t step = 0; step < 6; ++step) {
      const RewardStep drawn = rewards.step(rows_batch(drawn_rows(prepared.rows[t].learn, c.asked, t, step)));
      CHECK(drawn.reward == Approx(task.steps[step].reward).epsilon(1e-6));
      CHECK(drawn.kl == Approx(task.steps[step].kl).epsilon(1e-3));
    }
    CHECK(task.rewarded.right == Approx(c.loss(t, expert_edits(as_written(learner.expert()))).second).epsilon(1e-3));
    CHECK(task.rewarded.kl > 0);
  }
  CHECK_THROWS_AS(RewardTuningRun(c.loaded, c.asked, -1).step(Ctx{c.backend}), Error);
}

}  // namespace headscope::expert_comparison_test
