#pragma once
// One model on one text, and what further edits do to its prediction, one set of edits after another: the measuring
// page of every sweep. Only the blocks that a set of edits can reach are computed.

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run/pass_memory.h"

namespace headscope {

/// Two tokens that may follow the last one: logit difference = logit[right] − logit[wrong].
struct AnswerPair {
  std::int32_t right = 0, wrong = 0;
  bool operator==(const AnswerPair&) const = default;
};
/// The single token that `text` is in this model's vocabulary; a leading space may be written ␣. Throws Error at
/// `where` when it is none or several (naming them).
std::int32_t answer_token(const LoadedModel& loaded, const std::string& text, const std::string& where);
/// The two most probable tokens after the last position. Throws Error when the vocabulary has but one.
AnswerPair likely_answers(const Trace& trace);

/// What a pass predicts. Numbers that do not exist are NaN.
struct Outcome {
  double loss = std::numeric_limits<double>::quiet_NaN();              ///< mean −ln p of the text's tokens, nats
  double kl = std::numeric_limits<double>::quiet_NaN();                ///< KL(before ‖ after) of the next token, nats
  double logit_difference = std::numeric_limits<double>::quiet_NaN();  ///< of the answers, after the last token
};

class EditProbe {
 public:
  /// Runs the request as it is, its own edits included: "before". `record` is what passes record besides logits;
  /// request.capture is not looked at. Without `losses` only the last row of logits is computed.
  EditProbe(LoadedModel loaded, RunRequest request, bool losses, const Ctx& ctx);

  const LoadedModel& loaded() const { return loaded_; }
  const RunRequest& request() const { return request_; }
  const std::shared_ptr<const Trace>& before() const { return before_; }
  int layers() const { return before_->model.dims.layers; }
  /// Of a part of an encoder-decoder.
  const ModelDims& dims(Stack of) const { return before_->model.part(of).dims; }

  void set_answers(const AnswerPair& answers) { answers_ = answers; }
  const std::optional<AnswerPair>& answers() const { return answers_; }
  /// Runs what these edits take from other texts, once for all of them. Edits given to after() need no more than the
  /// union of what was asked for here.
  void know_sources(const std::vector<Intervention>& edits, const Ctx& ctx);

  /// Remembers the pass with `more` edits, so that further passes with nearly the same ones compute less. "Before"
  /// stays.
  void move_to(const std::vector<Intervention>& more, const Ctx& ctx);

  /// The pass with `more` edits after the request's own; maps of `layers` are recorded.
  std::shared_ptr<const Trace> run(const std::vector<Intervention>& more, const Ctx& ctx,
                                   const std::set<int>& map_layers = {}) const;
  Outcome outcome(const Trace& trace) const;
  Outcome after(const std::vector<Intervention>& more, const Ctx& ctx) const { return outcome(*run(more, ctx)); }

 private:
  LoadedModel loaded_;
  RunRequest request_;
  std::optional<AnswerPair> answers_;
  PassMemory memory_;
  EditSources sources_;
  std::shared_ptr<const Trace> before_;
};

/// How many blocks a pass with these edits has to compute: those from the first edited layer on.
int blocks_to_compute(const std::vector<Intervention>& edits, int layers);

}  // namespace headscope
