#include "core/train/trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/train/batches.h"
#include "core/train/recurrent_layers.h"

namespace headscope {

namespace {
constexpr int scored_rows = 24;
constexpr int scores_in_all = 10;  // in the course of a trial, besides the last

/// Rows of `size` characters that are said twice. Only those of the second time count: they are certain.
Batch rows_of_size(const Task& task, int size) {
  Random random(task.settings().seed + 0x73697a65u + static_cast<std::uint64_t>(size));
  std::vector<std::vector<std::int32_t>> rows;
  for (int i = 0; i < scored_rows; ++i)
    rows.push_back(ids_of(*task.tokenizer(), repeated_text(random, size, 2 * size)));
  Batch batch = batches_of(rows, scored_rows, task.vocabulary().end_of_text_id(), false).front();
  for (std::size_t i = 0; i < batch.targets.size(); ++i)
    if (static_cast<int>(i) % (2 * size) < size) batch.targets[i] = -1;
  return batch;
}

std::int64_t state_numbers(const Contestant& of) {
  const ModelShape& m = of.recipe.model;
  const std::int64_t width = std::int64_t{m.heads} * m.head_width(), recurrent = std::ssize(of.recurrent);
  return recurrent * width * m.head_width() + (m.layers - recurrent) * 2 * width * m.context;
}
}  // namespace

struct Trial::Runner {
  Runner(const Contestant& of, Backend& on) : contestant(of), backend(on), trainer(of.recipe, on) { length(0); }
  Contestant contestant;
  Backend& backend;
  Trainer trainer;
  TrialStanding standing;

  /// The texts of the passes to come have so many tokens; 0 = the context.
  void length(int tokens) {
    if (contestant.recurrent.empty()) return;
    Learner& learner = trainer.learner();
    learner.set_tap(recurrent_layers(learner.config(), contestant.recurrent,
                                     tokens > 0 ? tokens : contestant.recipe.model.context, backend));
  }
};

Trial::Trial(const TrialPlan& plan, Backend& backend) : plan_(plan) {
  for (const Contestant& each : plan.contestants) {
    Runner& runner = *runners_.emplace_back(std::make_unique<Runner>(each, backend));
    runner.standing.title = each.title;
    runner.standing.parameters = runner.trainer.learner().parameters().count();
    runner.standing.state = state_numbers(each);
    runner.standing.score.assign(plan.sizes.size(), nan);
  }
}
Trial::~Trial() = default;

void Trial::score(Runner& runner, std::stop_token stop) {
  std::vector<double> score;
  for (const int size : plan_.sizes) {
    const Batch rows = rows_of_size(runner.trainer.task(), size);
    runner.length(rows.length);
    score.push_back(runner.trainer.learner().accuracy(rows, stop));
  }
  runner.standing.score = std::move(score);
  runner.standing.scored_step = runner.trainer.progress().step;
}

void Trial::run(std::int64_t steps, std::stop_token stop) {
  for (const auto& runner : runners_) {
    runner->length(0);  // scoring, which may have been stopped, leaves that of its rows
    const std::int64_t every = std::max<std::int64_t>(runner->contestant.recipe.steps / scores_in_all, 1);
    const TrainingProgress p = runner->trainer.run(steps, stop);
    if (p.step / every > runner->standing.scored_step / every ||
        (p.finished() && runner->standing.scored_step < p.step))
      score(*runner, stop);
  }
}

bool Trial::finished() const {
  return std::ranges::all_of(runners_, [](const auto& each) {
    const TrainingProgress& p = each->trainer.progress();
    return p.finished() && each->standing.scored_step == p.step;
  });
}

double Trial::share_done() const {
  double done = 0, all = 0;
  for (const auto& each : runners_) {
    done += static_cast<double>(each->trainer.progress().step);
    all += static_cast<double>(each->trainer.progress().steps);
  }
  return done / all;
}

std::vector<TrialStanding> Trial::standings() const {
  std::vector<TrialStanding> out;
  for (const auto& each : runners_) {
    TrialStanding& now = out.emplace_back(each->standing);
    now.progress = each->trainer.progress();
    now.curve = each->trainer.curve();
  }
  return out;
}

Learner& Trial::learner(std::size_t contestant) {
  return runners_.at(contestant)->trainer.learner();
}

const TrialPlan& trial_plan(const std::string& id) {
  std::vector<std::string> known;
  for (const TrialPlan& plan : trial_plans()) {
    if (plan.id == id) return plan;
    known.push_back(plan.id);
  }
  throw Error("trial", fmt::format("one of {}", fmt::join(known, ", ")), "\"" + id + "\"");
}

TrialPlan with_steps(TrialPlan plan, std::int64_t steps) {
  for (Contestant& each : plan.contestants) {
    if (steps > 0) each.recipe.steps = steps;
    each.recipe.optimizer.schedule_steps = each.recipe.steps;
    each.recipe.optimizer.warmup_steps = std::min<std::int64_t>(each.recipe.optimizer.warmup_steps, each.recipe.steps);
  }
  return plan;
}

}  // namespace headscope
