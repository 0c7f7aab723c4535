#pragma once
// What a model in training makes of its task, in a line or two that people read beside the loss. Any thread.

#include <cstdint>

#include "core/base/words.h"
#include "core/run/run_request.h"
#include "core/train/tasks.h"

namespace headscope {

/// A moment of a model that learns.
struct TrainingProbe {
  const LoadedModel& model;
  const Task& task;
  std::uint64_t seed = 1;     ///< of what is drawn
  const RunRequest& request;  ///< the probe that heads are watched on …
  const Trace& trace;         ///< … and its run
};

/// Of a writer a text; of an encoder the probe with tokens masked, and what it takes them for: ⟨so⟩ where it is right,
/// ⟨so|as it was⟩ else; of a translator the probe's source and what it makes of it; of a model of pictures what it
/// takes the example picture for.
Worded training_sample(const TrainingProbe& probe, const Ctx& ctx);

}  // namespace headscope
