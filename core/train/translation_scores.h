#pragma once
// How well a model translates, and how well the heads of its cross-attention align the words of source and target, on
// sentences whose alignment is known.

#include <cstdint>
#include <vector>

#include "core/run/run_request.h"
#include "core/trace/head_id.h"

namespace headscope {

class TranslateTask;
struct Translation;
struct HeldOut;

/// Of a head of cross-attention.
struct CrossHeadScore {
  HeadId id;
  /// Alignment error rate (core/metrics/alignment.h) of the rows that write a word's tokens, and of those that
  /// read them, one row later.
  double written = 0, read = 0;
  double weight = 0;       ///< mean of what the rows that write a word give the word it stands for
  double loss_change = 0;  ///< held-out loss with the head's z set to zero, minus without, nats per token
};

struct TranslationScores {
  int sentences = 0;  ///< translated, and looked at for alignment: those that its context has room for
  double exact = 0;   ///< the share whose greedy translation is the target, to the last token
  std::int64_t sure = 0, possible = 0;  ///< their links; the sure are among the possible
  double chance = 0;                    ///< the error rate of links drawn at random
  double in_order = 0;                  ///< of word 1 linked to word 1, 2 to 2 …
  std::vector<CrossHeadScore> heads;    ///< layer-major
  const CrossHeadScore& best() const;   ///< of the least error as it writes. REQUIRES heads
};

/// Of so many sentences those that fit. `few`: for loss_change. REQUIRES that one fits. Throws Error, Cancelled.
TranslationScores measure_translation(const LoadedModel& loaded, const TranslateTask& task, int sentences,
                                      const HeldOut& few, const Ctx& ctx);

/// The error rate of every head of cross-attention as it writes, layer-major, in a run of one sentence that recorded
/// all maps.
std::vector<double> alignment_errors(const Trace& trace, const Translation& sentence);

/// The most probable tokens one after another until the model ends its text, or the context is full. `source`: what
/// the encoder reads, whole.
std::vector<std::int32_t> greedy_translation(const Model& model, const Ctx& ctx, std::span<const std::int32_t> source);

}  // namespace headscope
