#pragma once
// When the tokens of a target were said in the sound that it was written from, as cross-attention tells it: of the
// chosen heads every key's weights over the tokens are normalised (minus their mean, by their deviation), smoothed
// along time by a median, and averaged; a path through this matrix that goes on by a token, a key or both (dynamic time
// warping, Sakoe & Chiba 1978) and gathers most of it gives each token the key at which it is reached (OpenAI's
// Whisper, timing.py, and transformers).

#include <span>
#include <string>
#include <vector>

#include "core/trace/trace.h"

namespace headscope {

/// In seconds, of the query tokens from `first` on. `smoothing`: keys that a median is of, odd. Keys behind the sound
/// are not looked at. Throws Error when `cross` is of no sound, has no such heads, or no token from `first` on.
std::vector<double> token_times(const Trace& cross, std::span<const HeadId> heads, Index first, int smoothing);

/// Where a target's text begins: behind the tokens that steer the model. The number of tokens where there is no text.
Index first_said(const Trace& target);

/// A word of the target and when it was said.
struct WordTime {
  std::string text;           ///< without the space before it, with punctuation behind it
  Index first = 0, last = 0;  ///< tokens of the target
  double begin = 0, end = 0;  ///< seconds: the times of its first token and of the token behind it, or the sound's end
};
/// The words (core/trace/words.h) of the target by token_times(); empty where no text was written. Throws as that does.
std::vector<WordTime> word_times(const Trace& cross, const Trace& target, std::span<const HeadId> heads, int smoothing);

/// Those that a file names, or, where it names none, all of the decoder's upper half (as OpenAI's code does).
std::vector<HeadId> alignment_heads_or_upper_half(const std::vector<HeadId>& named, const ModelDims& decoder);

}  // namespace headscope
