#pragma once
// When the words of a target were said in the sound that it was written from, for the pictures of that sound.

#include <memory>

#include "core/run/target_rules.h"
#include "core/trace/trace.h"

namespace headscope {

struct SpokenWords;  // viz/scene/sound_map.h

/// By the heads that the model's file names, or the decoder's upper half (core/metrics/token_times.h). Null where
/// `whole`, a run, is of no sound, holds no cross-attention, or no text was written. Any thread; takes as long as all
/// rows of those heads.
std::shared_ptr<const SpokenWords> spoken_words(const Trace& whole, const TargetRules* rules);

}  // namespace headscope
