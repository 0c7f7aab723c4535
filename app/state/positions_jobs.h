#pragma once
// The work behind the Positions workspace: pure functions of a model and a run. Any thread; one pass at a time per
// backend. They throw Error or Cancelled.

#include "app/state/positions_controller.h"
#include "core/edits/position_edit.h"

namespace headscope::jobs {

/// What keeps the scores of a layer's heads from being told by distances alone, to be said(); null where nothing does.
const char* beyond_distances(const ModelConfig& config, int layer, std::int64_t tokens);

std::shared_ptr<const HeadVectors> head_vectors(const LoadedModel& model, const TracedRun& run, HeadId head,
                                                const Ctx& ctx);
/// Independent N(0, 1) vectors for every token of the run.
std::shared_ptr<const HeadVectors> random_vectors(const TracedRun& run, int d_head, std::uint64_t seed);
/// The same two vectors at every token. Throws Error when they are no numbers, or not equally many, or odd.
std::shared_ptr<const HeadVectors> typed_vectors(const TracedRun& run, const std::string& query,
                                                 const std::string& key);

/// The run with `edit` as its last one, beside the run.
std::shared_ptr<const PositionsEffect> positions_effect(const LoadedModel& model, const TracedRun& run,
                                                        const SetPositions& edit, const Ctx& ctx);

std::shared_ptr<const PermutedRun> permuted(const LoadedModel& model, const TracedRun& run, const Ctx& ctx);

/// T5's numbers from the scores of a head: q·k without any rotation, scaled.
std::vector<float> fitted_bias(const HeadVectors& vectors, int buckets, int max_distance);

}  // namespace headscope::jobs
