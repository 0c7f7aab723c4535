#pragma once
// When the tokens of a target were said in the sound that it was written from, as cross-attention tells it: of the
// chosen heads every key's weights over the tokens are normalised (minus their mean, by their deviation), smoothed
// along time by a median, and averaged; a path through this matrix that goes on by a token, a key or both (dynamic time
// warping, Sakoe & Chiba 1978) and gathers most of it gives each token the key at which it is reached (OpenAI's
// Whisper, timing.py, and transformers).

#include <span>
#include <vector>

#include "core/trace/trace.h"

namespace headscope {

/// In seconds, of the query tokens from `first` on. `smoothing`: keys that a median is of, odd. Keys behind the sound
/// are not looked at. Throws Error when `cross` is of no sound, has no such heads, or no token from `first` on.
std::vector<double> token_times(const Trace& cross, std::span<const HeadId> heads, Index first, int smoothing);

/// Those that a file names, or, where it names none, all of the decoder's upper half (as OpenAI's code does).
std::vector<HeadId> alignment_heads_or_upper_half(const std::vector<HeadId>& named, const ModelDims& decoder);

}  // namespace headscope
