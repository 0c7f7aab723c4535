#pragma once
// A training run as a value: what is learnt, by which model, how. The same recipe gives the same weights on the same
// machine. Written as JSON:
//
//   {"name": "tiny-gpt2",
//    "task": {"kind": "stories", "seed": 1, "vocabulary": 1536, "vocabulary_stories": 4000},
//    "model": {"family": "gpt2", "layers": 4, "heads": 4, "width": 128, "mlp": 512, "context": 256},
//    "training": {"steps": 3000, "batch": 16, "learning_rate": 0.002, "seed": 1, …}}

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/model/config.h"
#include "core/train/adamw.h"
#include "core/train/tasks.h"

namespace headscope {

struct ModelShape {
  std::string family = "gpt2";  ///< "gpt2", "llama", "mixtral", of the task "masked" "bert", of the task "translate"
                                ///< "bart", of "shapes" "vit"; without attention "mamba" and "mamba2"
  int layers = 4, heads = 4;    ///< of each stack
  int kv_heads = 4;             ///< fewer than heads: grouped queries (llama and mixtral only)
  int width = 128;
  int d_head = 0;                          ///< width of a head; 0 = width / heads (another for llama and mixtral only)
  int mlp = 512;                           ///< width of the hidden layer, of mixtral in each expert; 0 = attention only
  int experts = 8, experts_per_token = 2;  ///< of each layer, and as many of them take a token (mixtral only)
  int context = 256;                       ///< of pictures the number of their tokens
  double initial_deviation = 0.02;         ///< of the first weights (Parameters::initial)
  std::string first_positions = "random";  ///< what learned positions start as: "random" or "sinusoids" (gpt2 …)
  int states = 16;                         ///< of each channel (mamba, mamba2 only)
  int expand = 2;                          ///< channels of a state space, in widths
  bool operator==(const ModelShape&) const = default;
  /// Whether positions mix through a state in place of attention: `mlp` and `kv_heads` then say nothing, nor `heads` of
  /// mamba, which has none.
  bool state_space() const { return family == "mamba" || family == "mamba2"; }
  bool has_experts() const { return family == "mixtral"; }
  /// Whether `mlp` may not be 0.
  bool needs_mlp() const { return has_experts() || family == "bert" || family == "bart" || family == "vit"; }
  /// Rotary positions, grouped queries, heads of any width, gated MLPs.
  bool rotary() const { return family == "llama" || family == "mixtral"; }
  int head_width() const { return d_head > 0 ? d_head : width / std::max(heads, 1); }
};

struct Recipe {
  std::string name = "model";  ///< of the model: letters, digits, - _ .
  TaskSettings task;
  ModelShape model;
  OptimizerSettings optimizer;  ///< its schedule_steps are `steps`
  std::int64_t steps = 1000;
  int batch = 16;              ///< rows of `context` tokens (translate: sentences) in a step
  std::uint64_t seed = 1;      ///< of the first weights
  int evaluate_every = 100;    ///< steps between held-out losses
  int evaluate_rows = 64;      ///< held-out rows each time
  int checkpoint_every = 500;  ///< steps between checkpoints of `headscope-cli train`

  /// Throws Error at `where` on numbers that make no sense or do not fit each other.
  void check(const std::string& where) const;
};

/// Throws Error at `where` on anything that is not such JSON: unknown, missing or repeated keys, wrong types and
/// ranges. Keys that are left out keep the values above; name, task.kind and model.family must be there.
Recipe parse_recipe(std::string_view json, const std::string& where);
Recipe load_recipe(const std::filesystem::path& file);
/// Every key; parse_recipe() reads it back to the same recipe.
std::string recipe_json(const Recipe& recipe);

/// What a step learns from: "16 × 256 tokens", "32 sentences".
std::string step_text(const Recipe& recipe);

/// The model of a recipe whose task has this vocabulary. Throws Error when the family refuses the shape.
ModelConfig model_config(const Recipe& recipe, const TrainedBpe& vocabulary);

}  // namespace headscope
