#pragma once
// REINFORCE (Williams, 1992) as Transformer² learns its experts (Sun, Cetin & Tang, 2025): a token ŷ is drawn from what
// the model says behind a prompt, its reward r is 1 where it is the right one and −1 elsewhere, and what grows is
//   J = E[ln π′(ŷ) r] − λ KL(π′ ‖ π),
// π′ the model with the expert, π the model as it was. Here every counted target of a batch is a prompt of its own,
// with one token for an answer; the paper writes whole answers.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/random.h"
#include "core/train/singular_expert.h"

namespace headscope {

struct RewardStep {
  double reward = 0;  ///< of the tokens drawn, mean
  double kl = 0;      ///< KL(π′ ‖ π), nats, mean
  double right = 0;   ///< Σ π′(right token), mean: what the share of right tokens is on average
};

/// −J of `draws` tokens at every counted target, mean over all, and an unbiased estimate of the slope of −E[r] + λ KL
/// over the logits: mean of −(r − E[r]) (1[ŷ] − π′), and λ π′ (ln π′ − ln π − KL). `logits` and `plain` (sequences ·
/// length, vocab): π′ and π. REQUIRES draws ≥ 1.
SingularLearner::LogitLoss reward_loss(const Tensor& logits, const Tensor& plain, std::span<const std::int32_t> targets,
                                       double price, int draws, Random& random, RewardStep& step);

/// An expert learnt by it, step by step.
class RewardLearner {
 public:
  struct Settings {
    double price = 0.1;  ///< λ ≥ 0
    int draws = 8;       ///< tokens drawn at every target, ≥ 1
    std::uint64_t seed = 1;
  };
  /// `plain` is the model as it was; `learner`, which is restarted, and `backend` outlive it. Throws Error on a price
  /// below 0 and on no draws.
  RewardLearner(std::shared_ptr<const Model> plain, SingularLearner& learner, const Settings& settings,
                Backend& backend);
  /// What was drawn before the step; then z moves. Throws as SingularLearner::step().
  RewardStep step(const Batch& batch, std::stop_token stop = {});
  /// Without a draw: reward is its mean, 2 · right − 1.
  RewardStep measure(const Batch& batch, std::stop_token stop = {}) const;

 private:
  std::shared_ptr<const Model> plain_;
  SingularLearner& learner_;
  Settings settings_;
  Backend& backend_;
  Random random_;
};

}  // namespace headscope
