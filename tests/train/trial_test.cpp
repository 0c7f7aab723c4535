// Models side by side: the recurrence by its definition, what a trial measures, and that stopping changes nothing.

#include "core/train/trial.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <set>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/train/recurrent_layers.h"

namespace headscope::trial_test {

namespace {
TrialPlan small_plan() {
  TrialPlan plan;
  plan.id = "small";
  plan.sizes = {3, 5};
  Recipe recipe;
  recipe.name = "small";
  recipe.task = {.kind = "repeated", .seed = 2, .shortest_period = 3, .longest_period = 5};
  recipe.model = {.family = "llama", .layers = 2, .heads = 2, .kv_heads = 2, .width = 16, .mlp = 0, .context = 12};
  recipe.steps = recipe.optimizer.schedule_steps = 6;
  recipe.optimizer.warmup_steps = 1;
  recipe.batch = 3;
  recipe.evaluate_every = 3;
  recipe.evaluate_rows = 4;
  plan.contestants = {{"attention", recipe},
                      {"again", recipe},
                      {"state", recipe, transformer({0, 1})},
                      {"hybrid", recipe, transformer({0})}};
  return plan;
}

/// Sees what one layer's heads got and gave, behind another tap.
class Watching final : public Tap {
 public:
  explicit Watching(std::shared_ptr<Tap> before) : before_(std::move(before)) {}
  bool wants(Site site) const override {
    return before_->wants(site) || (site.layer == 0 && (site.kind == SiteKind::rot_q || site.kind == SiteKind::rot_k ||
                                                        site.kind == SiteKind::v || site.kind == SiteKind::z));
  }
  Tensor at(Site site, const Tensor& value) override {
    const Tensor now = before_->wants(site) ? before_->at(site, value) : value;
    if (site.layer == 0) {
      if (site.kind == SiteKind::rot_q) q = now.copy();
      if (site.kind == SiteKind::rot_k) k = now.copy();
      if (site.kind == SiteKind::v) v = now.copy();
      if (site.kind == SiteKind::z) z = now.copy(), softmax_z = value.copy();
    }
    return now;
  }
  Tensor q, k, v, z, softmax_z;  // (position, head, d_head)

 private:
  std::shared_ptr<Tap> before_;
};
}  // namespace

TEST_CASE("recurrent layers: z is Σ γ^(t − s) (q_t · k_s) scale v_s of the text's own tokens, in the layers named") {
  Backend backend(1);
  const Recipe recipe = small_plan().contestants[0].recipe;
  const auto task = make_task(recipe.task);
  Learner learner(model_config(recipe, task->vocabulary()), recipe.optimizer, 1, backend);
  const ModelConfig& config = learner.config();
  constexpr int length = 7, texts = 2;
  auto watching = std::make_shared<Watching>(recurrent_layers(config, {0}, length, backend));
  learner.set_tap(watching);
  const Batch batch = task->batch(1, texts, length);
  const double with = learner.loss(batch);
  const Tensor &q = watching->q, &k = watching->k, &v = watching->v, &z = watching->z;
  REQUIRE(z.dim(0) == texts * length);
  const double scale = 1 / std::sqrt(8.0);
  CHECK(retention_decay(0) > 0.4);
  double off = 0, most = 0;
  for (Index t = 0; t < z.dim(0); ++t)
    for (Index head = 0; head < 2; ++head)
      for (Index c = 0; c < 8; ++c) {
        double sum = 0;
        for (Index s = t - t % length; s <= t; ++s) {
          double score = 0;
          for (Index d = 0; d < 8; ++d) score += static_cast<double>(q.at(t, head, d)) * k.at(s, head, d);
          sum += std::pow(retention_decay(static_cast<int>(head)), static_cast<double>(t - s)) * score * scale *
                 v.at(s, head, c);
        }
        most = std::max(most, std::abs(sum));
        off = std::max(off, std::abs(sum - z.at(t, head, c)));
        CHECK(z.at(t, head, c) != watching->softmax_z.at(t, head, c));
      }
  CHECK(off < 1e-5 * most);
  CHECK(most > 0);
  // In no layer nothing changes, and in another one something else does.
  learner.set_tap(recurrent_layers(config, {}, length, backend));
  const double without = learner.loss(batch);
  learner.set_tap(nullptr);
  CHECK(learner.loss(batch) == without);
  learner.set_tap(recurrent_layers(config, {1}, length, backend));
  CHECK(learner.loss(batch) != with);
  CHECK(learner.loss(batch) != without);
}

TEST_CASE("recurrent layers learn: their queries, keys and values have gradients as differences say") {
  Backend backend(1);
  Recipe recipe = small_plan().contestants[0].recipe;
  recipe.model.initial_deviation = 0.3;  // weights that matter
  const auto task = make_task(recipe.task);
  const Batch batch = task->batch(1, 3, 12);
  OptimizerSettings settings = recipe.optimizer;
  const ModelConfig config = model_config(recipe, task->vocabulary());
  const Parameters start = Parameters::initial(config, {1, 0.3});
  const auto loss_of = [&](const Parameters& at) {
    Learner learner(at, settings, backend);
    learner.set_tap(recurrent_layers(config, {0, 1}, 12, backend));
    return learner.loss(batch);
  };
  // Adam's first step moves every weight against the sign of its gradient, by the rate.
  settings.weight_decay = 0, settings.warmup_steps = 0, settings.clip_norm = 1e9;
  settings.learning_rate = settings.final_learning_rate = 1e-4;
  Learner learner(start, settings, backend);
  learner.set_tap(recurrent_layers(config, {0, 1}, 12, backend));
  learner.step(batch);
  int compared = 0, agreed = 0;
  for (std::size_t p = 0; p < start.all().size(); ++p) {
    const std::string& name = start.all()[p].name;
    if (name.find("_proj") == std::string::npos) continue;
    for (Index i = 0; i < 256; i += 37) {
      Parameters up = start.clone(), down = start.clone();
      up.all()[p].value.mutable_values()[static_cast<std::size_t>(i)] += 0.02f;
      down.all()[p].value.mutable_values()[static_cast<std::size_t>(i)] -= 0.02f;
      const double slope = (loss_of(up) - loss_of(down)) / 0.04;
      if (std::abs(slope) < 2e-3) continue;
      const float moved = learner.parameters().all()[p].value.values()[static_cast<std::size_t>(i)] -
                          start.all()[p].value.values()[static_cast<std::size_t>(i)];
      ++compared;
      agreed += (moved < 0) == (slope > 0);
    }
  }
  CHECK(compared > 15);
  CHECK(agreed == compared);
}

TEST_CASE(
    "a trial: the same recipe stands the same, what keeps how much, scores when they are due, stops and goes on") {
  Backend backend(1);
  const TrialPlan plan = small_plan();
  Trial trial(plan, backend);
  CHECK(trial.share_done() == 0);
  for (const TrialStanding& each : trial.standings()) CHECK(std::isnan(each.score[0]));
  trial.run(2);
  CHECK(trial.share_done() == doctest::Approx(2.0 / 6));
  CHECK_FALSE(trial.finished());
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(trial.run(1, stop.get_token()), Cancelled);
  while (!trial.finished()) trial.run(1);
  const auto now = trial.standings();
  Trial whole(plan, backend);
  whole.run(100);
  CHECK(whole.finished());
  const auto at_once = whole.standings();
  for (std::size_t i = 0; i < now.size(); ++i) {
    CHECK(now[i].progress.held_out == at_once[i].progress.held_out);
    CHECK(now[i].score == at_once[i].score);
    CHECK(now[i].scored_step == 6);
    CHECK(now[i].parameters == now[0].parameters);
  }
  CHECK(now[0].progress.held_out == now[1].progress.held_out);
  CHECK(now[0].score == now[1].score);
  CHECK(now[2].progress.held_out != now[0].progress.held_out);
  CHECK(now[3].progress.held_out != now[2].progress.held_out);
  // Keys and values of 12 tokens, 16 numbers each, in two layers; two heads' states of 8 × 8; one of either.
  CHECK(now[0].state == 2 * 2 * 16 * 12);
  CHECK(now[2].state == 2 * 2 * 8 * 8);
  CHECK(now[3].state == 2 * 16 * 12 + 2 * 8 * 8);
}

TEST_CASE("a trial that is stopped while it scores learns on as if nothing had been") {
  Backend backend(1);
  TrialPlan plan = small_plan();
  plan.contestants = {{"state", plan.contestants[0].recipe, transformer({0, 1})}};
  plan.sizes = {3, 5, 4, 3};
  for (Contestant& each : plan.contestants) each.recipe.steps = each.recipe.optimizer.schedule_steps = 60;
  Trial whole(plan, backend);
  while (!whole.finished()) whole.run(1);
  // Somewhere between the first moment of a step with its score and the last: whenever the step is done and the score
  // is not, it was while scoring.
  int while_scoring = 0;
  for (int wait = 0; wait < 400 && while_scoring < 3; ++wait) {
    Trial trial(plan, backend);
    std::stop_source stop;
    std::jthread stops([&] {
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(40 * wait);
      while (std::chrono::steady_clock::now() < until) {
      }
      stop.request_stop();
    });
    try {
      while (!trial.finished()) trial.run(1, stop.get_token());
    } catch (const Cancelled&) {
    }
    stops.join();
    const TrialStanding now = trial.standings()[0];
    const std::int64_t every = 60 / 10;
    if (now.progress.step / every <= now.scored_step / every || trial.finished()) continue;
    ++while_scoring;
    while (!trial.finished()) trial.run(1);
    CHECK(trial.standings()[0].progress.held_out == whole.standings()[0].progress.held_out);
    CHECK(trial.standings()[0].score == whole.standings()[0].score);
  }
  CHECK(while_scoring > 0);
}

TEST_CASE("accuracy: the share of counted targets whose logit is the largest") {
  Backend backend(1);
  const Recipe recipe = small_plan().contestants[0].recipe;
  const auto task = make_task(recipe.task);
  Learner learner(model_config(recipe, task->vocabulary()), recipe.optimizer, 1, backend);
  Batch batch = task->batch(1, 2, 8);
  const Tensor logits = run_batch(*learner.snapshot(), batch, Ctx{.backend = backend}).logits;
  int right = 0;
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    const auto row = logits.select(0, static_cast<Index>(i)).values();
    const auto best = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
    if (i % 4 == 0) batch.targets[i] = -1;                // not counted
    if (i % 4 == 1) batch.targets[i] = best;              // right
    if (i % 4 >= 2) batch.targets[i] = best > 0 ? 0 : 1;  // wrong
    right += i % 4 == 1;
  }
  CHECK(learner.accuracy(batch) == doctest::Approx(right / (0.75 * 16)));
}

TEST_CASE("the trials have names of their own, and what differs is one thing") {
  std::set<std::string> ids;
  for (const TrialPlan& plan : trial_plans()) {
    CHECK(ids.insert(plan.id).second);
    CHECK(&trial_plan(plan.id) == &plan);
    CHECK(plan.contestants.size() >= 3);
    CHECK(with_steps(plan, 7).contestants.back().recipe.steps == 7);
    for (const Contestant& each : plan.contestants) {
      each.recipe.check("recipe");
      CHECK(each.recipe.task == plan.contestants.front().recipe.task);
      CHECK(each.recipe.model.width == plan.contestants.front().recipe.model.width);
      CHECK(each.recipe.seed == plan.contestants.front().recipe.seed);
    }
  }
  CHECK_THROWS_AS(trial_plan("nothing"), Error);
}

}  // namespace headscope::trial_test
