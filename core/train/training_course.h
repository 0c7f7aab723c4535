#pragma once
// The course of a training run, whoever learns: batch by batch of a task, the held-out loss whenever it is due, where
// it stands and how long it will take. One thread at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "core/train/checkpoint.h"
#include "core/train/learner.h"
#include "core/train/recipe.h"
#include "core/train/tasks.h"

namespace headscope {

/// Where a run stands. Losses in nats per token.
struct TrainingProgress {
  std::int64_t step = 0, steps = 0;
  double loss = 0;      ///< of the last step's batch, before its update; NaN before the first
  double held_out = 0;  ///< measured last; NaN when it never was
  std::int64_t held_out_step = 0;
  double floor = 0;              ///< of the held-out rows
  double learning_rate = 0;      ///< of the last step
  double gradient_norm = 0;      ///< before clipping
  double balance = nan;          ///< of experts, in the last step's batch (StepReport); NaN where there are none
  double seconds = 0;            ///< spent on training, in all sittings together
  double tokens_per_second = 0;  ///< of this sitting, evaluations included; 0 before the first step
  double seconds_left = 0;       ///< at that speed
  bool finished() const { return step >= steps; }
};

/// Mean loss over the batches, each target counted once.
double held_out_loss(BatchLearner& learner, const HeldOut& data, std::stop_token stop = {});

class TrainingCourse {
 public:
  /// Step 0 of a recipe: its task, steps, batches and evaluations. Throws Error as Task::held_out.
  TrainingCourse(const Recipe& recipe, std::shared_ptr<const Task> task);
  /// Goes on where a checkpoint stopped.
  void resume(const Checkpoint& checkpoint);

  /// As Trainer::run.
  TrainingProgress run(BatchLearner& learner, std::int64_t steps, std::stop_token stop = {},
                       const std::function<void(const TrainingProgress&)>& after_step = {});
  const TrainingProgress& progress() const { return progress_; }
  const std::vector<TrainingPoint>& curve() const { return curve_; }
  const HeldOut& held_out() const { return held_out_; }

 private:
  std::shared_ptr<const Task> task_;
  int batch_, context_, evaluate_every_;
  HeldOut held_out_;
  TrainingProgress progress_;
  std::vector<TrainingPoint> curve_;
  std::int64_t steps_here_ = 0, tokens_here_ = 0;  // in this sitting
  double seconds_here_ = 0;
};

}  // namespace headscope
