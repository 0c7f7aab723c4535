#pragma once
// Composing experts of singular values beside composing low-rank adapters (core/train/low_rank_adapter.h) of the same
// matrices, learnt by as many steps over the same batches: what two of them together are worth on both tasks, as an
// interpolation and as a sum. Sun, Cetin & Tang (Transformer², 2025) hold that the former compose and the latter do
// not; this measures it.

#include <array>
#include <memory>
#include <vector>

#include "core/analysis/self_adaptation.h"
#include "core/train/low_rank_adapter.h"

namespace headscope {

/// Weights (of the first, of the second) of what is composed: three interpolations, and the sum.
inline constexpr std::array<std::array<double, 2>, 4> composed_weights = {
    {{0.75, 0.25}, {0.5, 0.5}, {0.25, 0.75}, {1, 1}}};

struct ExpertComposition {
  SelfAdaptationAsked asked;  ///< nothing is searched
  int rank = 1;
  double adapter_rate = 0.01;
  std::vector<TaskTexts> tasks;
  std::size_t expert_numbers = 0, adapter_numbers = 0;
  // Nats per token of unseen texts behind their prompts.
  std::vector<double> model;                           ///< by task, without either
  std::vector<std::vector<double>> experts, adapters;  ///< [that of task][on task]
  struct Pair {
    std::size_t first = 0, second = 0;                     ///< tasks
    std::vector<std::array<double, 2>> experts, adapters;  ///< by composed_weights: on the first, on the second
  };
  std::vector<Pair> pairs;
};

/// Means over all pairs so far and both of their tasks: half and half, and each task's own one alone.
struct HalfAndHalf {
  double experts = 0, own_expert = 0, adapters = 0, own_adapter = 0;
};
/// REQUIRES a pair.
HalfAndHalf half_and_half(const ExpertComposition& found);

class ExpertCompositionRun final : public Sweep {
 public:
  using Result = ExpertComposition;
  /// Throws as SelfAdaptationRun and LowRankLearner, in the first step.
  ExpertCompositionRun(LoadedModel loaded, SelfAdaptationAsked asked, int rank, double adapter_rate);
  void step(const Ctx& ctx) override;
  int done() const override { return done_; }
  int total() const override;
  bool finished() const override { return experts_ && done_ == total(); }
  double share() const override { return total() ? static_cast<double>(done_) / total() : 0; }
  std::shared_ptr<const ExpertComposition> result() const;

 private:
  void learn(std::size_t task, bool adapter, const Ctx& ctx);
  void compose(std::size_t pair, const Ctx& ctx);

  LoadedModel loaded_;
  ExpertComposition known_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<SingularLearner> experts_;
  std::unique_ptr<LowRankLearner> adapters_;
  std::vector<TaskRows> rows_;
  std::vector<ExpertSet::Expert> learnt_;
  std::vector<LowRankAdapter> adapted_;
  std::size_t taken_ = 0;  // steps of what is being learnt
  int done_ = 0;
};

}  // namespace headscope
