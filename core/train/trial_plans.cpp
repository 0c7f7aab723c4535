// What is tried side by side. A new trial is an entry here.

#include <fmt/format.h>

#include "core/train/trial.h"

namespace headscope {

namespace {
/// Two layers of a Llama, small enough for a minute or two.
Recipe small_recipe(const std::string& name, TaskSettings task, int context) {
  Recipe recipe;
  recipe.name = name;
  recipe.task = std::move(task);
  recipe.model = {
      .family = "llama", .layers = 2, .heads = 2, .kv_heads = 2, .width = 128, .mlp = 0, .context = context};
  recipe.steps = recipe.optimizer.schedule_steps = 700;
  recipe.batch = 32;
  recipe.optimizer.learning_rate = 0.001;
  recipe.optimizer.final_learning_rate = 0.0002;
  recipe.optimizer.warmup_steps = 50;
  recipe.optimizer.weight_decay = 0.01;
  recipe.evaluate_every = 25;
  recipe.evaluate_rows = 32;
  return recipe;
}

std::vector<Contestant> attention_and_states(const Recipe& recipe) {
  return {{"attention", recipe}, {"linear recurrence", recipe, {0, 1, 2}}, {"hybrid", recipe, {0}}};
}

TrialPlan copying() {
  Recipe recipe = small_recipe("copy", {.kind = "repeated", .seed = 1, .shortest_period = 8, .longest_period = 30}, 64);
  recipe.model.layers = 3;
  return {
      "copy",
      "Copying: attention and states of fixed size",
      "Copying",
      "Random characters are said twice. How long a text can be said again?",
      "Attention finds what followed the same character and copies any length it learnt at. A recurrence has to keep "
      "the text in a state of fixed size, and mixes up the more, the longer it is. With attention in the two layers "
      "above it the text comes back.",
      "Jelassi et al. 2024 (Repeat After Me), Arora et al. 2023 (Zoology)",
      "state space, SSM, Mamba, recall, exact recall, associative recall, linear recurrence, retention, hybrid, "
      "fixed state",
      "characters to copy",
      {8, 12, 16, 20, 24, 30},
      1.0 / 95,
      attention_and_states(recipe)};
}

TrialPlan heads() {
  TrialPlan plan{
      "heads",
      "Head count: one width shared out",
      "Head count",
      "The same width and as many weights, shared out to 1 … 32 heads. Which learn to copy?",
      "A head's scores have rank d_head = width ÷ heads at most (Bhojanapalli et al. 2020). How few numbers still "
      "tell 95 characters apart, and one place back from two?",
      "Bhojanapalli et al. 2020 (Low-Rank Bottleneck), Michel et al. 2019",
      "how many heads, number of heads, d_head, head width, ablation of width",
      "characters to copy",
      {8, 12, 16, 20, 24, 30},
      1.0 / 95,
      {}};
  Recipe recipe =
      small_recipe("heads", {.kind = "repeated", .seed = 1, .shortest_period = 8, .longest_period = 30}, 64);
  for (const int heads : {1, 2, 4, 8, 16, 32}) {
    recipe.model.heads = recipe.model.kv_heads = heads;
    plan.contestants.push_back({fmt::format("{} × {}", heads, recipe.model.width / heads), recipe});
  }
  return plan;
}
}  // namespace

const std::vector<TrialPlan>& trial_plans() {
  static const std::vector<TrialPlan> plans{copying(), heads()};
  return plans;
}

}  // namespace headscope
