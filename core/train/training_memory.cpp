#include "core/train/training_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/io/shapes.h"

namespace headscope {

namespace {
double vocabulary_of(const TaskSettings& task) {
  if (task.draws()) return static_cast<double>(shape_names().size());
  return task.reads_bytes() ? 257 : task.vocabulary;  // bytes, and the mark
}

/// Of a model whose positions mix through states.
TrainingMemory state_space_memory(const Recipe& recipe) {
  const ModelShape& m = recipe.model;
  const bool heads = m.family == "mamba2";
  const double width = m.width, inner = double(m.expand) * width, states = m.states, rank = (m.width + 15) / 16,
               lanes = heads ? m.heads : inner, convolved = inner + (heads ? 2 * states : 0), taps = 4,
               vocabulary = vocabulary_of(recipe.task), rows = double(recipe.batch) * m.context;
  const double made = heads ? width * lanes + 2 * lanes + inner  // steps, decays, what passes by; a norm
                            : inner * (rank + 2 * states) + rank * lanes + (states + 2) * lanes;
  const double block = width * (inner + convolved) + inner * width + convolved * (taps + 1) + made + width;
  // Per row of a block: norm, residual sum and what is added to it; channels, convolved and activated, and the gate;
  // step, B and C; y, the gate activated and their product. Of states one in 32 rows.
  const double row =
      3 * width + 3 * convolved + 4 * inner + 2 * lanes + (heads ? inner : rank + 2 * states) + inner * states / 32;
  constexpr double bytes = sizeof(float);
  return {.weights = 4 * bytes * (m.layers * block + width * vocabulary),
          .activations = bytes * m.layers * rows * row,
          .attention = 0,
          .logits = 2 * bytes * rows * vocabulary};
}
}  // namespace

TrainingMemory training_memory(const Recipe& recipe) {
  if (recipe.model.state_space()) return state_space_memory(recipe);
  const ModelShape& m = recipe.model;
  const bool gated = m.rotary() && m.mlp > 0;
  const bool both = m.family == "bart";  // two stacks, and attention from the one to the other
  constexpr int shortest_sentence = 6;   // with its end
  const double context = recipe.task.translates() ? std::min(m.context, shortest_sentence) : m.context;
  const double width = m.width, mlp = m.mlp, layers = (both ? 2.0 : 1.0) * m.layers,
               maps = (both ? 3.0 : 1.0) * m.layers;
  const double queries = double(m.heads) * m.head_width(), keys = double(m.kv_heads) * m.head_width();
  const double vocabulary = vocabulary_of(recipe.task);
  const double rows = double(recipe.batch) * context;

  const double matrices = (gated ? 3 : 2) * width * mlp;
  const double block = width * (2 * queries + 2 * keys) + (m.has_experts() ? m.experts * (matrices + width) : matrices);
  const double across = both ? m.layers * width * (2 * queries + 2 * keys) : 0;
  const double parameters =
      layers * block + across + width * vocabulary + (m.rotary() ? 0 : (both ? 2 : 1) * width * m.context);
  // Per row of a block: both norms and the two residual sums, q k v z, and the hidden layer before and after its
  // activation (and its other branch).
  const double hidden = (gated ? 3 : 2) * mlp;
  // Of experts: what each is given and gives back, too; logits and weights of the router.
  const double row = 4 * width + 2 * queries + 2 * keys +
                     (m.has_experts() ? m.experts_per_token * (hidden + 2 * width) + 2 * m.experts : hidden);
  constexpr double bytes = sizeof(float);
  return {.weights = 4 * bytes * parameters,
          .activations = bytes * layers * rows * row,
          .attention = bytes * maps * recipe.batch * m.heads * context * context,
          .logits = 2 * bytes * rows * vocabulary};
}

void check_training_memory(const TrainingMemory& need, std::uint64_t available, const std::string& where,
                           const std::string& hint) {
  if (need.total() <= static_cast<double>(available)) return;
  throw Error(where, fmt::format("a training that fits into {} of free memory", memory_text(double(available))),
              fmt::format("one that takes {} at least: weights {}, activations {}, attention {}, logits {}",
                          memory_text(need.total()), memory_text(need.weights), memory_text(need.activations),
                          memory_text(need.attention), memory_text(need.logits)),
              hint);
}

void check_training_memory(const Recipe& recipe, std::uint64_t available, const std::string& where) {
  check_training_memory(training_memory(recipe), available, where,
                        "a smaller batch, context, width or number of layers takes less");
}

}  // namespace headscope
