#include "core/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/memory.h"
#include "core/base/special_values.h"
#include "core/model/picture_input.h"
#include "core/train/training_memory.h"

namespace headscope {

Trainer::Trainer(const Recipe& recipe, Backend& backend) : recipe_(recipe) {
  recipe_.check("recipe");
  check_training_memory(recipe_, available_memory(), "recipe");
  recipe_.optimizer.schedule_steps = recipe_.steps;
  task_ = make_task(recipe_.task);
  held_out_ = task_->held_out(recipe_.evaluate_rows, recipe_.batch, recipe_.model.context);
  Parameters::Initial first{recipe_.seed, recipe_.model.initial_deviation};
  if (recipe_.model.first_positions == "sinusoids") first.positions = Parameters::FirstPositions::sinusoids;
  learner_ = std::make_unique<Learner>(Parameters::initial(model_config(recipe_, task_->vocabulary()), first),
                                       recipe_.optimizer, backend);
  progress_.steps = recipe_.steps;
  progress_.floor = held_out_.floor;
  progress_.loss = progress_.held_out = nan;
}

Trainer::Trainer(const Checkpoint& checkpoint, Backend& backend) : Trainer(checkpoint.recipe, backend) {
  learner_->restore(checkpoint.state);
  if (learner_->steps() != checkpoint.step)
    throw Error("checkpoint", fmt::format("an optimiser that has taken {} steps", checkpoint.step),
                fmt::format("one that has taken {}", learner_->steps()));
  curve_ = checkpoint.curve;
  progress_.step = checkpoint.step;
  progress_.seconds = checkpoint.seconds;
  if (!curve_.empty()) progress_.loss = curve_.back().loss;
  for (const TrainingPoint& point : curve_)
    if (!std::isnan(point.held_out)) progress_.held_out = point.held_out, progress_.held_out_step = point.step;
}

Trainer::~Trainer() = default;

TrainingProgress Trainer::run(std::int64_t steps, std::stop_token stop,
                              const std::function<void(const TrainingProgress&)>& after_step) {
  const std::int64_t last = std::min(recipe_.steps, progress_.step + std::max<std::int64_t>(steps, 0));
  while (progress_.step < last) {
    if (stop.stop_requested()) throw Cancelled();
    const auto start = std::chrono::steady_clock::now();
    // The batch follows from the number of the step alone, so a resumed run reads on where it stopped.
    const std::int64_t step = progress_.step + 1;
    const Batch batch = task_->batch(step, recipe_.batch, recipe_.model.context);
    const StepReport report = learner_->step(batch, stop);
    progress_.step = step;
    progress_.loss = report.loss;
    progress_.gradient_norm = report.gradient_norm;
    progress_.learning_rate = report.learning_rate;
    curve_.push_back({step, report.loss, nan});
    // Not cancelled: a checkpoint between a step and its evaluation would lose the point for ever.
    if (step % recipe_.evaluate_every == 0 || step == recipe_.steps) evaluate({});
    const double spent = seconds_since(start);
    progress_.seconds += spent;
    seconds_here_ += spent;
    ++steps_here_;
    tokens_here_ += static_cast<std::int64_t>(batch.tokens.size() + batch.source.size());
    const double per_step = seconds_here_ / static_cast<double>(steps_here_);
    progress_.tokens_per_second = static_cast<double>(tokens_here_) / seconds_here_;
    progress_.seconds_left = static_cast<double>(recipe_.steps - step) * per_step;
    if (after_step) after_step(progress_);
  }
  return progress_;
}

void Trainer::evaluate(std::stop_token stop) {
  progress_.held_out = held_out_loss(*learner_, held_out_, stop);
  progress_.held_out_step = progress_.step;
  curve_.back().held_out = progress_.held_out;
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
  return {recipe_, progress_.step, progress_.seconds, curve_, {}};
}

double held_out_loss(Learner& learner, const HeldOut& data, std::stop_token stop) {
  double sum = 0;
  for (const Batch& batch : data.batches) {
    const auto count = std::ranges::count_if(batch.targets, [](auto id) { return id >= 0; });
    sum += learner.loss(batch, stop) * static_cast<double>(count);
  }
  return sum / static_cast<double>(data.targets);
}

}  // namespace headscope
