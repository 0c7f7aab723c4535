#pragma once
// An expert for each of several tasks by REINFORCE (core/train/reinforce.h) and, beside it, by the gradient of the same
// tokens' loss: as many steps over the same batches. What is rewarded is the right next token of a text.

#include <memory>
#include <vector>

#include "core/analysis/self_adaptation.h"
#include "core/train/reinforce.h"

namespace headscope {

struct RewardTuning {
  SelfAdaptationAsked asked;  ///< whose batches, seed and rate are these; nothing is searched
  double price = 0;
  std::vector<TaskTexts> tasks;
  struct Task {
    std::vector<RewardStep> steps;  ///< of REINFORCE: what was drawn before each
    std::vector<double> losses;     ///< of the gradient: before each step
    /// Of unseen texts behind their prompts: the model, the expert by REINFORCE, the one by gradient.
    RewardStep before, rewarded, taught;
    bool whole = false;
  };
  std::vector<Task> found;  ///< task by task, the last one so far
};

class RewardTuningRun final : public Sweep {
 public:
  using Result = RewardTuning;
  /// Throws as SelfAdaptationRun and RewardLearner, in the first step.
  RewardTuningRun(LoadedModel loaded, SelfAdaptationAsked asked, double price);
  void step(const Ctx& ctx) override;
  int done() const override { return done_; }
  int total() const override { return learner_ ? 2 * known_.asked.steps * static_cast<int>(known_.tasks.size()) : 0; }
  bool finished() const override { return learner_ && done_ == total(); }
  double share() const override { return total() ? static_cast<double>(done_) / total() : 0; }
  std::shared_ptr<const RewardTuning> result() const;

 private:
  LoadedModel loaded_;
  RewardTuning known_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<SingularLearner> learner_;
  std::unique_ptr<RewardLearner> rewards_;
  std::vector<TaskRows> rows_;
  int done_ = 0;
};

}  // namespace headscope
