#pragma once
// A training run at one moment, as a value: kept in memory to scrub back and fork, or in a file to go on after an
// interruption. Going on from it gives the same bits as never having stopped.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/special_values.h"
#include "core/tensor/tensor.h"
#include "core/train/recipe.h"

namespace headscope {

/// One step of the loss curve.
struct TrainingPoint {
  std::int64_t step = 0;
  double loss = 0;       ///< mean over the step's batch before its update, nats per token
  double held_out = 0;   ///< mean over the held-out rows after it; NaN where it was not measured
  double balance = nan;  ///< of experts in the step's batch, 1 where even; NaN where there are none
  bool operator==(const TrainingPoint& other) const;  ///< NaN equals NaN
};

struct Checkpoint {
  Recipe recipe;
  std::int64_t step = 0;
  double seconds = 0;  ///< spent on training up to here, in all sittings together
  std::vector<TrainingPoint> curve;
  std::map<std::string, Tensor> state;  ///< of the Learner

  std::size_t bytes() const;  ///< memory of the tensors
};

/// What a finished model says about its training: training.json, {"steps": n, "seconds": s, "curve": [[step, loss,
/// held-out loss], …]} with a point for every held-out loss; of models with experts their balance is a fourth number.
struct TrainingRecord {
  std::int64_t steps = 0;
  double seconds = 0;
  std::vector<TrainingPoint> curve;
};
std::string training_json(const Checkpoint& checkpoint);
/// Throws Error when the file is missing or has another form.
TrainingRecord load_training_record(const std::filesystem::path& file);

/// A safetensors file whose metadata holds the rest. Written beside and renamed: an interruption leaves the old one.
void save_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& file);
/// Throws Error on a file that is missing, damaged, or no checkpoint.
Checkpoint load_checkpoint(const std::filesystem::path& file);

}  // namespace headscope
