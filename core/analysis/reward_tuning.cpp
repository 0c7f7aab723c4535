#include "core/analysis/reward_tuning.h"

#include <utility>

#include "core/analysis/singular_tuning.h"

namespace headscope {

RewardTuningRun::RewardTuningRun(LoadedModel loaded, SelfAdaptationAsked asked, double price)
    : loaded_(std::move(loaded)) {
  known_.asked = std::move(asked), known_.price = price;
}

void RewardTuningRun::step(const Ctx& ctx) {
  const SelfAdaptationAsked& asked = known_.asked;
  if (!learner_) {
    PreparedTasks prepared = prepare_tasks(loaded_, asked, 1, ctx.stop);
    auto backend = std::make_unique<Backend>(ctx.backend.pool().threads());
    auto learner = singular_learner(loaded_, asked.model, asked.matrices, {.rate = asked.rate}, prepared.longest,
                                    *backend, ctx.stop, available_memory(), asked.batch);
    RewardLearner(loaded_.model, *learner, {.price = known_.price}, *backend);  // refuses a price that makes no sense
    known_.tasks = std::move(prepared.tasks), rows_ = std::move(prepared.rows);
    backend_ = std::move(backend), learner_ = std::move(learner);
    return;
  }
  const auto which = static_cast<std::size_t>(done_ / (2 * asked.steps));
  const int at = done_ % (2 * asked.steps);
  const Batch test = rows_batch(rows_[which].test);
  if (at == 0) {
    rewards_ = std::make_unique<RewardLearner>(
        loaded_.model, *learner_, RewardLearner::Settings{.price = known_.price, .seed = asked.seed + which},
        *backend_);
    RewardTuning::Task task;
    task.before = rewards_->measure(test, ctx.stop);
    if (known_.found.size() == which) known_.found.push_back(std::move(task));
  } else if (at == asked.steps) {
    learner_->restart();
  }
  RewardTuning::Task& task = known_.found[which];
  const Batch batch =
      rows_batch(drawn_rows(rows_[which].learn, asked, which, static_cast<std::size_t>(at % asked.steps)));
  if (at < asked.steps)
    task.steps.push_back(rewards_->step(batch, ctx.stop));
  else
    task.losses.push_back(learner_->step(batch, ctx.stop));
  if ((at + 1) % asked.steps == 0) {
    learner_->set_expert(as_written(learner_->expert()));
    (at < asked.steps ? task.rewarded : task.taught) = rewards_->measure(test);
    task.whole = at >= asked.steps;
  }
  ++done_;
}

std::shared_ptr<const RewardTuning> RewardTuningRun::result() const {
  return learner_ ? std::make_shared<const RewardTuning>(known_) : nullptr;
}

}  // namespace headscope
