#pragma once
// An expert of singular values learnt on one text, as a computation in steps (core/train/singular_expert.h).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <vector>

#include "core/analysis/sweep.h"
#include "core/base/memory.h"
#include "core/edits/intervention.h"
#include "core/run/run_request.h"
#include "core/train/singular_expert.h"

namespace headscope {

/// z to four decimals, as edits write it.
SingularExpert as_written(SingularExpert expert);
/// What carries an expert out in a run: an edit for each part whose z is not all 1, as_written().
std::vector<Intervention> expert_edits(const SingularExpert& expert);

/// One for texts of up to so many tokens, so many at once. Throws Error as Parameters::load and SingularLearner, before
/// anything is read where the model cannot be used or `available` bytes are too few.
std::unique_ptr<SingularLearner> singular_learner(const LoadedModel& loaded, const std::filesystem::path& folder,
                                                  const std::vector<WeightMatrix>& matrices,
                                                  const SingularLearner::Settings& settings, int tokens,
                                                  Backend& backend, std::stop_token stop = {},
                                                  std::uint64_t available = available_memory(), int texts = 1);

struct SingularTuningAsked {
  RunRequest run;                      ///< the model, and the text that is learnt; its edits are not looked at
  std::vector<WeightMatrix> matrices;  ///< whose singular values, in every layer
  int steps = 40;                      ///< ≥ 1
  double rate = 0.02;
  bool operator==(const SingularTuningAsked&) const = default;
};

struct SingularTuning {
  SingularTuningAsked asked;
  std::vector<double> losses;  ///< before each step taken; when all are, one more: after the last, as_written()
  SingularExpert expert;       ///< so far; at the end as_written()
};

class SingularTuner final : public Sweep {
 public:
  using Result = SingularTuning;
  SingularTuner(LoadedModel loaded, SingularTuningAsked asked);
  /// The first step throws Error as singular_learner().
  void step(const Ctx& ctx) override;
  int done() const override { return done_; }
  int total() const override { return learner_ ? known_.asked.steps : 0; }
  bool finished() const override { return learner_ && done_ == total(); }
  double share() const override { return total() ? static_cast<double>(done_) / total() : 0; }
  std::shared_ptr<const SingularTuning> result() const;

 private:
  LoadedModel loaded_;
  SingularTuning known_;
  std::unique_ptr<Backend> backend_;  // the processor: weights that change are in its memory
  std::unique_ptr<SingularLearner> learner_;
  Batch batch_;
  int done_ = 0;
};

}  // namespace headscope
