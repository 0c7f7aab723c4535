#pragma once
// What a training run needs in memory, reckoned from its recipe before anything is allocated.

#include <cstdint>
#include <string>

#include "core/train/recipe.h"

namespace headscope {

/// Bytes, as doubles: a recipe may ask for more than an integer holds.
struct TrainingMemory {
  double weights = 0;      ///< with their gradients and the two moments of Adam
  double activations = 0;  ///< of one batch, kept for the way back
  double attention = 0;    ///< the patterns among them: (head, query, key) of every row of the batch and layer
  double logits = 0;       ///< and their gradient
  double total() const { return weights + activations + attention + logits; }
};

/// The least that a step takes: what the learner surely holds at the same time.
TrainingMemory training_memory(const Recipe& recipe);

/// Throws Error at `where`, with the numbers, when that is more than `available` bytes.
void check_training_memory(const TrainingMemory& need, std::uint64_t available, const std::string& where,
                           const std::string& hint);
void check_training_memory(const Recipe& recipe, std::uint64_t available, const std::string& where);

}  // namespace headscope
