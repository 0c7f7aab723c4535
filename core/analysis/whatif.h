#pragma once
// Two questions that need the model to run again, beside the document's own edits: what massive activations do for the
// sink, and whether other attention weights give the same answer.

#include <memory>
#include <vector>

#include "core/analysis/sinks.h"
#include "core/metrics/next_token_change.h"
#include "core/run/run_request.h"

namespace headscope {

/// Sun et al., Massive Activations in Large Language Models, 2024: set them to zero and see what becomes of the sink.
struct ZeroedActivations {
  std::vector<HiddenActivation> zeroed;
  std::vector<double> sink_before, sink_after;  ///< per layer: mean weight on key 0 over heads and rows 1 and on
  double loss_before = 0, loss_after = 0;       ///< mean nats per token; NaN for one token
  double kl = 0;                                ///< KL(before ‖ after) of the next token after the last position
};
/// Runs `request` twice: as it is, and with these numbers of resid_post set to 0. Throws as run().
ZeroedActivations zero_activations(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx,
                                   const std::vector<HiddenActivation>& which);

/// What the model answers when one row of one head is another.
struct RowReplaced {
  double kl = 0;           ///< KL(before ‖ after) of the next token, in nats: at the row's own position …
  double kl_last = 0;      ///< … and at the end of the text
  NextTokenChange change;  ///< at the row's own position
};
/// `before` is the trace of `request`, with all logits. Throws as run().
RowReplaced replace_row(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx, const Trace& before,
                        HeadId head, Index query, const std::vector<double>& weights);

}  // namespace headscope
