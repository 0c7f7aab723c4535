#pragma once
// The first pass of Transformer² over one prompt: what each way of choosing sees in it, and what it chooses
// (core/analysis/self_adaptation.h). The second pass is a run with expert_edits() of what was chosen.

#include <vector>

#include "core/analysis/expert_set.h"
#include "core/run/run_request.h"

namespace headscope {

struct FirstPass {
  /// Mean nats per token of the prompt: the model's, then each expert's.
  std::vector<double> losses;
  std::size_t by_prompt = 0;  ///< 0: the model itself, 1 + k: expert k; the lowest loss, of equals the first
  /// With the classifier, behind the prompt: the share of each expert's label of what all labels have together. Empty
  /// without a classifier.
  std::vector<double> labels;
  double said = 0;                ///< the probability that they have together
  std::size_t by_classifier = 0;  ///< 1 + k; 0 without a classifier
};

/// Every pass is an ordinary run whose edits are the expert's; edits of the request itself are not looked at. Throws
/// Error as check_fits() and run(), and on a prompt of a single token, of which nothing is told.
FirstPass first_pass(const LoadedModel& loaded, const ExpertSet& set, const RunRequest& prompt, const Ctx& ctx);

}  // namespace headscope
