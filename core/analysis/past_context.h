#pragma once
// Texts longer than any in training: what every way of going on with the model's positions makes of them, as the loss
// by position. Nothing is trained: what the model learnt at its own length is asked farther on.

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/run/run_request.h"

namespace headscope {

/// What the methods are set to.
struct PastContextSettings {
  double base = 0;                                            ///< of rotary positions; 0 = the model's own
  double factor = 4;                                          ///< that rotary positions are stretched by
  RotaryConfig::Ramp ramp = RotaryConfig::Ramp::whole_pairs;  ///< of YaRN
  int chunk = 0;  ///< tokens in one of dual chunk attention; 0 = three quarters of the trained length
  int times = 4;  ///< the trained length: how long the texts are
  bool operator==(const PastContextSettings&) const = default;
};

/// Loss per position of texts longer than any in training, one line for each way of going on.
struct LongRun {
  struct Line {
    std::string title;
    std::vector<double> loss;     ///< mean over texts and over `bin` positions, nats; NaN beyond what it can read
    std::vector<double> by_part;  ///< mean over texts and positions of every trained length: within, 1–2 ×, …
  };
  std::vector<Line> lines;
  int bin = 32, tokens = 0, texts = 0, context = 0;
  Worded source;
  Worded refusal;  ///< why there is none, as a sentence
  /// Of part `part`, the line with the least loss; −1 = none has a number.
  int best(std::size_t part) const;
};

/// `count` texts of `tokens` tokens in the language that the model learnt, where that is one whose texts can be of any
/// length (its folder's recipe.json says so): stories one after another as in training, or one text of "backcopy". None
/// of another model.
std::vector<std::vector<std::int32_t>> learnt_texts(const LoadedModel& model, const std::filesystem::path& folder,
                                                    int count, int tokens);

/// The model with `request`'s edits, on texts of the language that it learnt (a bundled model of stories), else on
/// `own_text` where that is longer than the trained length. Of a rotary model: every scaling (none among them), dual
/// chunks, no positions, ALiBi. Of one with a learned table, which ends at the trained length: the table, and what can
/// take its place, as far as that. Of others (ALiBi, no positions): sinusoids, none, ALiBi.
LongRun past_context(const LoadedModel& model, const std::filesystem::path& folder, const RunRequest& request,
                     const std::vector<std::int32_t>& own_text, const PastContextSettings& settings, const Ctx& ctx);

}  // namespace headscope
