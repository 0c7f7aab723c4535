#include "core/train/trainer.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/memory.h"
#include "core/model/picture_input.h"
#include "core/train/training_memory.h"

namespace headscope {

namespace {
/// The same, when it makes sense and fits.
const Recipe& checked(const Recipe& recipe) {
  recipe.check("recipe");
  check_training_memory(recipe, available_memory(), "recipe");
  return recipe;
}
}  // namespace

// In braces arguments are evaluated in order: nothing is made of a recipe that is wrong.
Trainer::Trainer(const Recipe& recipe, Backend& backend) : Trainer{checked(recipe), make_task(recipe.task), backend} {}

Trainer::Trainer(const Recipe& recipe, std::shared_ptr<const Task> task, Backend& backend)
    : recipe_(recipe), task_(std::move(task)), course_(recipe, task_) {
  recipe_.optimizer.schedule_steps = recipe_.steps;
  Parameters::Initial first{recipe_.seed, recipe_.model.initial_deviation};
  if (recipe_.model.first_positions == "sinusoids") first.positions = Parameters::FirstPositions::sinusoids;
  learner_ = std::make_unique<Learner>(Parameters::initial(model_config(recipe_, task_->vocabulary()), first),
                                       recipe_.optimizer, backend);
}

Trainer::Trainer(const Checkpoint& checkpoint, Backend& backend) : Trainer(checkpoint.recipe, backend) {
  learner_->restore(checkpoint.state);
  if (learner_->steps() != checkpoint.step)
    throw Error("checkpoint", fmt::format("an optimiser that has taken {} steps", checkpoint.step),
                fmt::format("one that has taken {}", learner_->steps()));
  course_.resume(checkpoint);
}

Trainer::~Trainer() = default;

TrainingProgress Trainer::run(std::int64_t steps, std::stop_token stop,
                              const std::function<void(const TrainingProgress&)>& after_step) {
  return course_.run(*learner_, steps, stop, after_step);
}

void Trainer::set_optimizer(const OptimizerSettings& settings) {
  learner_->set_settings(settings);
  recipe_.optimizer = settings;
}

Checkpoint Trainer::checkpoint() const {
  Checkpoint out = checkpoint_without_state();
  out.state = learner_->state();
  return out;
}

void Trainer::save_model(const std::filesystem::path& folder) const {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error(folder.string(), "a folder that can be made", failure.message());
  learner_->parameters().save(folder, DType::f16);
  if (const auto& vision = learner_->config().vision)
    write_file_atomically(folder / "preprocessor_config.json", write_preparation(*vision));
  else
    save_tokenizer(task_->vocabulary(), folder);
  write_file_atomically(folder / "recipe.json", recipe_json(recipe_));
  write_file_atomically(folder / "training.json", training_json(checkpoint_without_state()));
}

Checkpoint Trainer::checkpoint_without_state() const {
  return {recipe_, progress().step, progress().seconds, curve(), {}};
}

}  // namespace headscope
