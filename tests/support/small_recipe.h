#pragma once
// A recipe that a test can wait for.

#include "core/train/recipe.h"

namespace headscope::testing {

inline Recipe small_recipe() {
  Recipe recipe;
  recipe.name = "small";
  recipe.task.kind = "repeated";
  recipe.task.shortest_period = 4;
  recipe.task.longest_period = 8;
  recipe.model = {.family = "gpt2", .layers = 1, .heads = 2, .kv_heads = 2, .width = 16, .mlp = 0, .context = 24};
  recipe.steps = 40;
  recipe.batch = 4;
  recipe.evaluate_every = 10;
  recipe.evaluate_rows = 8;
  recipe.optimizer.schedule_steps = recipe.steps;
  return recipe;
}

}  // namespace headscope::testing
