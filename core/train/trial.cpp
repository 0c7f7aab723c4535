#include "core/train/trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/special_values.h"

namespace headscope {

namespace {
constexpr int scores_in_all = 10;  // in the course of a trial, besides the last
}  // namespace

struct Trial::Runner {
  Runner(const Contestant& of, Backend& on) : contestant(of), model(of.make(of.recipe, on)) {}
  Contestant contestant;
  std::unique_ptr<TrialModel> model;
  TrialStanding standing;
};

Trial::Trial(const TrialPlan& plan, Backend& backend) : plan_(plan) {
  for (const Contestant& each : plan.contestants) {
    Runner& runner = *runners_.emplace_back(std::make_unique<Runner>(each, backend));
    runner.standing.title = each.title;
    runner.standing.parameters = runner.model->parameters();
    runner.standing.state = runner.model->state();
    runner.standing.score.assign(plan.sizes.size(), nan);
  }
}
Trial::~Trial() = default;

void Trial::score(Runner& runner, std::stop_token stop) {
  std::vector<double> score;
  for (const int size : plan_.sizes) score.push_back(runner.model->score(size, stop));
  auto alignment = runner.model->alignment(stop);
  auto written = runner.model->written(stop);
  runner.standing.alignment = std::move(alignment);
  runner.standing.written = std::move(written);
  runner.standing.score = std::move(score);
  runner.standing.scored_step = runner.model->progress().step;
}

void Trial::run(std::int64_t steps, std::stop_token stop) {
  for (const auto& runner : runners_) {
    const std::int64_t every = std::max<std::int64_t>(runner->contestant.recipe.steps / scores_in_all, 1);
    runner->model->learn(steps, stop);
    const TrainingProgress& p = runner->model->progress();
    if (p.step / every > runner->standing.scored_step / every ||
        (p.finished() && runner->standing.scored_step < p.step))
      score(*runner, stop);
  }
}

bool Trial::finished() const {
  return std::ranges::all_of(runners_, [](const auto& each) {
    const TrainingProgress& p = each->model->progress();
    return p.finished() && each->standing.scored_step == p.step;
  });
}

double Trial::share_done() const {
  double done = 0, all = 0;
  for (const auto& each : runners_) {
    done += static_cast<double>(each->model->progress().step);
    all += static_cast<double>(each->model->progress().steps);
  }
  return done / all;
}

std::vector<TrialStanding> Trial::standings() const {
  std::vector<TrialStanding> out;
  for (const auto& each : runners_) {
    TrialStanding& now = out.emplace_back(each->standing);
    now.progress = each->model->progress();
    now.curve = each->model->curve();
  }
  return out;
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
