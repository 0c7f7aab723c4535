#pragma once
// What the worker made, immutable and shared. Every struct says which trace it belongs to: while a new trace runs, the
// last good one stays, and what was computed from it stays with it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/state/app_state.h"
#include "core/base/folder.h"
#include "core/base/words.h"
#include "core/cuda/device_choice.h"
#include "core/metrics/head_class.h"
#include "core/metrics/metric.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "core/metrics/temperature_curve.h"
#include "core/run/run_request.h"
#include "core/trace/words.h"

namespace headscope {

/// A run with what the panels show at once.
struct TracedRun {
  RunRequest request;
  std::shared_ptr<const Trace> trace;  ///< of the stack that is looked at
  std::shared_ptr<const Trace> whole;  ///< with the logits of the last position (with_all_logits() knows the others):
                                       ///< the decoder's where there are several stacks, `trace` itself elsewhere
  Stack stack = Stack::only;
  std::vector<NextToken> next;       ///< after the last token, most probable first
  std::vector<MaskedAnswer> masked;  ///< of an encoder: what it says of every masked token
  WordGroups words;                  ///< of its tokens
  /// The trace in words, without maps: their labels. Null between two texts, which have no words in common.
  std::shared_ptr<const Trace> word_tokens;
};

/// All numbers about all heads of a trace: rows as in trace->maps, columns as in metrics().
struct HeadFacts {
  std::shared_ptr<const Trace> trace;
  HeadTable table;
  std::vector<std::vector<HeadVerdict>> verdicts;  ///< strongest class first; empty = no class
  std::vector<std::vector<HeadVerdict>> nearest;   ///< of a head without class the weak one, if there is any
  Worded not_measurable;                           ///< titles of classes of which this text holds no cells
  double milliseconds = 0;                         ///< that the metrics took
  /// Row of a head in `table` and `verdicts`; −1 when it was not recorded.
  int row(HeadId head) const;
  /// What is said of a head: its classes, else the one that it comes nearest to.
  const std::vector<HeadVerdict>& told(int row) const;
};

/// One head in factors: what the temperature curve, the steps (scores → mask → softmax) and the q·k split are made of.
struct HeadDetail {
  HeadId head;
  std::shared_ptr<const Trace> trace;     ///< of this head's layer alone, its maps factored: q(), k(), scale(), rule()
  std::shared_ptr<const Trace> of_trace;  ///< the trace on screen that it explains
  TemperatureCurve curve;                 ///< over absolute temperatures
  double temperature = 1;                 ///< the present point of the curve …
  double entropy = 0;                     ///< … and the entropy there
  const AttentionMap& map() const { return trace->map(head); }
};

/// Before and after the enabled edits.
struct EditEffect {
  std::shared_ptr<const Trace> before, after;              ///< of the stack that is looked at
  std::shared_ptr<const Trace> whole_before, whole_after;  ///< as TracedRun::whole
  NextTokenChange change;
  std::vector<MaskedAnswer> masked_before;  ///< TracedRun::masked without the edits
  /// Mean over the queries of half the sum of |weight before − after|, per head; rows as in before->maps. 0 = the same
  /// pattern, 1 = no weight in common.
  std::vector<double> moved;
};

/// What every token cost, in nats: −ln p(token | what came before), from the second token on. It takes the logits of
/// every position, which nothing else on screen waits for.
struct TextLosses {
  std::shared_ptr<const Trace> trace;  ///< TracedRun::whole
  std::vector<double> now;             ///< empty for a single token
  std::vector<double> before;  ///< without the enabled edits; empty when there are none, or it cannot run without them
};

/// The text cannot be run: it has more tokens than the model reads. The prompt panel offers to keep a part.
struct TooLongText {
  int tokens = 0, context = 0;
  bool counted = true;  ///< false: `tokens` is a lower bound
};

/// What is on screen. Any of it may still be empty.
struct Results {
  /// Whether the open model is an encoder-decoder: it reads a source and writes a target.
  bool translates() const { return model.model && model.model->encoder(); }
  /// Whether its encoder reads a sound.
  bool hears() const { return model.target != nullptr; }
  /// The mask that the open model's stack has without edits.
  std::string own_mask(Stack stack) const {
    const bool sees_all = stack == Stack::encoder || stack == Stack::cross;
    return model.model && (sees_all || !model.model->config().causal) ? "full" : "causal";
  }
  LoadedModel model;
  std::filesystem::path model_folder;
  /// Attention that another program captured, in place of a model: its run. model_folder is then its file.
  std::shared_ptr<const TracedRun> capture;
  DeviceChoice model_device;        ///< that it was opened for
  std::uint64_t model_reading = 0;  ///< tells apart what was read from one folder before and after its files changed
  std::shared_ptr<const TracedRun> run;
  std::shared_ptr<const HeadFacts> facts;
  std::shared_ptr<const HeadDetail> detail;
  std::shared_ptr<const EditEffect> effect;  ///< empty without enabled edits
  std::shared_ptr<const TextLosses> losses;
  std::optional<TooLongText> too_long;  ///< the document as it is now
  FilesStamp model_files;               ///< of the model, as they were when it was read

  /// The head's map of the run on screen; nullptr when there is none, as for a moment after another model was opened.
  const AttentionMap* map(HeadId head) const;
  /// What the tokens cost in the run on screen; nullptr while that is computed, or when it was stopped.
  std::shared_ptr<const TextLosses> current_losses() const;
};

/// Whether the model on screen is an encoder whose tokens can be masked.
bool asks_for_tokens(const Results& results);
/// Whether the model on screen reads pictures in place of texts.
bool reads_pictures(const Results& results);
/// Whether it mixes tokens by a state, in every layer or in this one, and has no queries, keys, scores and positions
/// there.
bool holds_state(const Results& results);
bool holds_state(const Results& results, int layer);
/// Whether this one can be, or be shown again: not where the token for masked ones was written.
bool can_mask(const Document& document, const Results& results, Index position);
/// The two tokens whose logits are compared: those of the view when the model has them, else the two most probable ones
/// before any edit. Nothing while there are no predictions.
std::optional<std::pair<std::int32_t, std::int32_t>> contrast_of(const AppState& state, const Results& results);

}  // namespace headscope
