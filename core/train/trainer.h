#pragma once
// A training run: a recipe's task, model and learner, some steps at a time. Values go out, nothing is written unless
// asked. One thread at a time (any); what it hands out may be used anywhere.

#include <cstdint>
#include <filesystem>
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
  double seconds = 0;            ///< spent on training, in all sittings together
  double tokens_per_second = 0;  ///< of this sitting, evaluations included; 0 before the first step
  double seconds_left = 0;       ///< at that speed
  bool finished() const { return step >= steps; }
};

class Trainer {
 public:
  /// Step 0 of a recipe. Throws Error as Recipe::check does, and when it needs more memory than there is. `backend`
  /// must outlive the trainer.
  Trainer(const Recipe& recipe, Backend& backend);
  /// Goes on where a checkpoint stopped; its recipe may have been given other settings for the optimiser since.
  Trainer(const Checkpoint& checkpoint, Backend& backend);
  ~Trainer();

  /// Up to `steps` more steps, at most to the recipe's end, and the held-out loss whenever it is due. `after_step` is
  /// called after each on this thread. Throws Cancelled between two steps or inside one, which then was not taken;
  /// Error when the loss or a gradient is not finite, naming step and tensor. The run can be continued or saved after
  /// both.
  TrainingProgress run(std::int64_t steps, std::stop_token stop = {},
                       const std::function<void(const TrainingProgress&)>& after_step = {});
  const TrainingProgress& progress() const { return progress_; }
  const std::vector<TrainingPoint>& curve() const { return curve_; }

  const Recipe& recipe() const { return recipe_; }
  const Task& task() const { return *task_; }
  std::shared_ptr<const Task> shared_task() const { return task_; }
  const HeldOut& held_out() const { return held_out_; }
  Learner& learner() { return *learner_; }
  /// Another learning rate, decay … from the next step on; kept in checkpoints. Throws Error when it makes no sense.
  void set_optimizer(const OptimizerSettings& settings);

  Checkpoint checkpoint() const;
  /// The model as it is now, for tracing and sampling.
  std::shared_ptr<const Model> snapshot(Backend* backend = nullptr) const { return learner_->snapshot(backend); }
  /// folder/model.safetensors (F16), config.json, tokenizer.json, tokenizer_config.json, recipe.json, training.json
  /// (see TrainingRecord); each atomically, not all together (TrainingFolder does that). Throws Error when one cannot
  /// be written.
  void save_model(const std::filesystem::path& folder) const;

 private:
  void evaluate(std::stop_token stop);
  Checkpoint checkpoint_without_state() const;

  Recipe recipe_;
  std::shared_ptr<const Task> task_;
  HeldOut held_out_;
  std::unique_ptr<Learner> learner_;
  TrainingProgress progress_;
  std::vector<TrainingPoint> curve_;
  std::int64_t steps_here_ = 0, tokens_here_ = 0;  // in this sitting
  double seconds_here_ = 0;
};

/// Mean loss over the batches, each target counted once.
double held_out_loss(Learner& learner, const HeldOut& data, std::stop_token stop = {});

}  // namespace headscope
