#pragma once
// Every head taken out in turn: what it does to the loss on the text, to the next token and to a logit difference
// (Michel, Levy & Neubig, Are Sixteen Heads Really Better than One?, 2019).

#include <memory>
#include <vector>

#include "core/engine/edit_probe.h"
#include "core/engine/sweep.h"

namespace headscope {

struct HeadAblationRequest {
  RunRequest run;  ///< its edits stay in force: every head is taken out of the model as edited
  Ablate ablate;
  std::optional<AnswerPair> answers;  ///< else the two most probable next tokens
};

struct HeadAblation {
  struct Head {
    int layer = 0, head = 0;
    Outcome after;
    /// Loss without the head minus loss with it: above 0, the text needs the head.
    double loss_change = 0;
    /// Likewise of the logit difference: below 0, the head speaks for the right answer.
    double logit_difference_change = 0;
  };
  HeadAblationRequest request;
  std::shared_ptr<const Trace> before_trace;  ///< tokens, dims, logits
  AnswerPair answers;
  Outcome before;
  std::vector<Head> heads;  ///< those computed so far, layer by layer
  int total = 0;
};

class HeadAblationSweep final : public Sweep {
 public:
  using Result = HeadAblation;
  HeadAblationSweep(LoadedModel loaded, HeadAblationRequest request);
  void step(const Ctx& ctx) override;
  int done() const override;
  int total() const override;
  bool finished() const override;
  double share() const override;
  /// What is known so far; null before the first step.
  std::shared_ptr<const HeadAblation> result() const;

 private:
  LoadedModel loaded_;
  std::optional<EditProbe> probe_;
  HeadAblation known_;
};

}  // namespace headscope
