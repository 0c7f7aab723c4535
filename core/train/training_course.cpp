#include "core/train/training_course.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/special_values.h"

namespace headscope {

TrainingCourse::TrainingCourse(const Recipe& recipe, std::shared_ptr<const Task> task)
    : task_(std::move(task)),
      batch_(recipe.batch),
      context_(recipe.model.context),
      evaluate_every_(recipe.evaluate_every),
      held_out_(task_->held_out(recipe.evaluate_rows, batch_, context_)) {
  progress_.steps = recipe.steps;
  progress_.floor = held_out_.floor;
  progress_.loss = progress_.held_out = nan;
}

void TrainingCourse::resume(const Checkpoint& checkpoint) {
  curve_ = checkpoint.curve;
  progress_.step = checkpoint.step;
  progress_.seconds = checkpoint.seconds;
  if (!curve_.empty()) progress_.loss = curve_.back().loss, progress_.balance = curve_.back().balance;
  for (const TrainingPoint& point : curve_)
    if (!std::isnan(point.held_out)) progress_.held_out = point.held_out, progress_.held_out_step = point.step;
}

TrainingProgress TrainingCourse::run(BatchLearner& learner, std::int64_t steps, std::stop_token stop,
                                     const std::function<void(const TrainingProgress&)>& after_step) {
  const std::int64_t last = std::min(progress_.steps, progress_.step + std::max<std::int64_t>(steps, 0));
  while (progress_.step < last) {
    if (stop.stop_requested()) throw Cancelled();
    const auto start = std::chrono::steady_clock::now();
    // The batch follows from the number of the step alone, so a resumed run reads on where it stopped.
    const std::int64_t step = progress_.step + 1;
    const Batch batch = task_->batch(step, batch_, context_);
    const StepReport report = learner.learn(batch, stop);
    progress_.step = step;
    progress_.loss = report.loss;
    progress_.gradient_norm = report.gradient_norm;
    progress_.learning_rate = report.learning_rate;
    progress_.balance = report.balance;
    curve_.push_back({step, report.loss, nan, report.balance});
    // Not cancelled: a checkpoint between a step and its evaluation would lose the point for ever.
    if (step % evaluate_every_ == 0 || step == progress_.steps) {
      progress_.held_out = curve_.back().held_out = held_out_loss(learner, held_out_);
      progress_.held_out_step = step;
    }
    const double spent = seconds_since(start);
    progress_.seconds += spent;
    seconds_here_ += spent;
    ++steps_here_;
    tokens_here_ += static_cast<std::int64_t>(batch.tokens.size() + batch.source.size());
    const double per_step = seconds_here_ / static_cast<double>(steps_here_);
    progress_.tokens_per_second = static_cast<double>(tokens_here_) / seconds_here_;
    progress_.seconds_left = static_cast<double>(progress_.steps - step) * per_step;
    if (after_step) after_step(progress_);
  }
  return progress_;
}

double held_out_loss(BatchLearner& learner, const HeldOut& data, std::stop_token stop) {
  double sum = 0;
  for (const Batch& batch : data.batches) {
    const auto count = std::ranges::count_if(batch.targets, [](auto id) { return id >= 0; });
    sum += learner.loss(batch, stop) * static_cast<double>(count);
  }
  return sum / static_cast<double>(data.targets);
}

}  // namespace headscope
