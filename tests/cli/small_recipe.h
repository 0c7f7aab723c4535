#pragma once
// A training of a second or so: long enough to be interrupted.

#include <algorithm>
#include <filesystem>

#include "core/base/file.h"
#include "core/base/json.h"

namespace headscope::testing {

inline nlohmann::json small_recipe(int steps) {
  return {
      {"name", "small"},
      {"task", {{"kind", "repeated"}, {"seed", 3}, {"shortest_period", 4}, {"longest_period", 8}}},
      {"model",
       {{"family", "llama"}, {"layers", 2}, {"heads", 2}, {"kv_heads", 2}, {"width", 32}, {"mlp", 0}, {"context", 24}}},
      {"training",
       {{"steps", steps},
        {"batch", 8},
        {"seed", 5},
        {"learning_rate", 0.003},
        {"final_learning_rate", 0.0003},
        {"warmup_steps", std::min(10, steps - 1)},
        {"weight_decay", 0.01},
        {"beta1", 0.9},
        {"beta2", 0.95},
        {"epsilon", 1e-8},
        {"clip_norm", 1.0},
        {"evaluate_every", 50},
        {"evaluate_rows", 8},
        {"checkpoint_every", 40}}}};
}

/// folder/given.json
inline std::filesystem::path written_recipe(const std::filesystem::path& folder, const nlohmann::json& recipe) {
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "given.json", recipe.dump());
  return folder / "given.json";
}

}  // namespace headscope::testing
