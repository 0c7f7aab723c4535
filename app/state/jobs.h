#pragma once
// What the worker does for RunController: pure functions from a model and a request, or from traces, to results. Any
// thread; one pass at a time per backend. They throw Error, or Cancelled once stop was requested.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "app/state/results.h"
#include "core/run/pass_memory.h"

namespace headscope::jobs {

/// `stack`: which one is looked at; where the model has no such one, its first answer is the decoder's.
std::shared_ptr<const TracedRun> trace(const LoadedModel& model, const RunRequest& request, Stack stack, const Ctx& ctx,
                                       PassMemory& memory);
struct WrittenTarget {
  std::vector<std::int32_t> ids;  ///< behind the token that begins it
  std::string text;               ///< empty without a tokenizer
};
/// What an encoder-decoder makes of the request's source: at every step the most probable token, until one that ends
/// texts, or as many as it can read.
WrittenTarget written_target(const LoadedModel& model, const RunRequest& request, const Ctx& ctx);
/// The run itself where it has no such part.
std::shared_ptr<const Trace> part_of(const std::shared_ptr<const Trace>& whole, Stack stack);
/// The same trace, with all that a device made of it in this machine's memory: the window looks at it in its own time,
/// and a card that is lost meanwhile takes nothing with it.
std::shared_ptr<const Trace> at_home(std::shared_ptr<const Trace> trace);
/// The same run, another of its stacks looked at.
std::shared_ptr<const TracedRun> looked_at(const TracedRun& run, Stack stack);
/// The run that a capture stands for. Queries that are the last of a longer text become a list of their own.
std::shared_ptr<const TracedRun> captured(std::shared_ptr<const Trace> trace, const std::filesystem::path& file);
std::shared_ptr<const HeadFacts> facts(std::shared_ptr<const Trace> trace, const std::stop_token& stop);
/// Runs the head's layer again in factors (that layer alone, where `memory` knows what it finds), unless the trace of
/// `run` holds factors itself.
std::shared_ptr<const HeadDetail> detail(const LoadedModel& model, const TracedRun& run, HeadId head, const Ctx& ctx,
                                         const PassMemory& memory);
/// Of the run on screen; `before` is the loss of the same without its edits, when that is known.
std::shared_ptr<const TextLosses> losses(const LoadedModel& model, const TracedRun& run, std::vector<double> before,
                                         const Ctx& ctx, const PassMemory& memory);
/// Of two whole runs, of which that stack is looked at.
std::shared_ptr<const EditEffect> effect(std::shared_ptr<const Trace> before, std::shared_ptr<const Trace> after,
                                         Stack stack, const std::stop_token& stop);

}  // namespace headscope::jobs
