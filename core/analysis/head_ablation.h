#pragma once
// Every head taken out in turn: what it does to the loss on the text, to the next token and to a logit difference
// (Michel, Levy & Neubig, Are Sixteen Heads Really Better than One?, 2019).

#include <memory>
#include <vector>

#include "core/analysis/cell_sweep.h"
#include "core/edits/ablate_edit.h"
#include "core/trace/head_id.h"

namespace headscope {

struct HeadAblationRequest {
  RunRequest run;  ///< its edits stay in force: every head is taken out of the model as edited
  Ablate ablate;
  std::optional<AnswerPair> answers;  ///< else the two most probable next tokens
  Stack stack = Stack::only;          ///< whose heads
  bool operator==(const HeadAblationRequest&) const = default;
};

struct HeadAblation {
  struct Head {
    HeadId id;
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

class HeadAblationSweep final : public CellSweep {
 public:
  using Result = HeadAblation;
  HeadAblationSweep(LoadedModel loaded, HeadAblationRequest request);
  /// What is known so far; null before the first step.
  std::shared_ptr<const HeadAblation> result() const;

 private:
  EditProbe prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) override;
  void measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) override;

  LoadedModel loaded_;
  HeadAblation known_;
};

}  // namespace headscope
