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
#include "core/train/training_course.h"

namespace headscope {

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
  const TrainingProgress& progress() const { return course_.progress(); }
  const std::vector<TrainingPoint>& curve() const { return course_.curve(); }

  const Recipe& recipe() const { return recipe_; }
  const Task& task() const { return *task_; }
  std::shared_ptr<const Task> shared_task() const { return task_; }
  const HeldOut& held_out() const { return course_.held_out(); }
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
  Trainer(const Recipe& recipe, std::shared_ptr<const Task> task, Backend& backend);
  Checkpoint checkpoint_without_state() const;

  Recipe recipe_;
  std::shared_ptr<const Task> task_;
  TrainingCourse course_;
  std::unique_ptr<Learner> learner_;
};

}  // namespace headscope
