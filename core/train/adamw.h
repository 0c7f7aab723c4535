#pragma once
// AdamW (Loshchilov & Hutter, Decoupled Weight Decay Regularization, 2019): Adam's moments (Kingma & Ba, 2015), decay
// apart from them and on matrices only, a learning rate that warms up and falls along a cosine, gradients clipped by
// their global norm (Pascanu et al., 2013). Not thread-safe; results do not depend on the number of threads. Where the
// backend has kernels for it (Backend::updates()), weights and moments stay on its device from step to step.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/train/parameters.h"

namespace headscope {

class Backend;

struct OptimizerSettings {
  double learning_rate = 1e-3;       ///< at the top of the schedule
  double final_learning_rate = 0;    ///< where the cosine ends, and what holds after it
  std::int64_t warmup_steps = 0;     ///< linear from 0 to the top
  std::int64_t schedule_steps = 0;   ///< warm-up and cosine together; 0 = constant after the warm-up
  double beta1 = 0.9, beta2 = 0.95;  ///< decay of the two moments
  double epsilon = 1e-8;
  double weight_decay = 0.1;  ///< of matrices (rank 2, embeddings too), never of gains, biases and paces
  double clip_norm = 1.0;     ///< largest norm of all gradients together; 0 = never clipped
  /// Nats of loss that a nat of attention entropy costs: above 0, heads choose where they look. 0 = free. A row counts
  /// without its first key, on which it may rest for nothing: −Σ p/S ln(p/S) over the other keys, S their sum. Mean
  /// over rows, heads and layers.
  double attention_entropy = 0;
  /// Steps in which it is free; from then on the price rises evenly and is whole at schedule_steps. Heads that pay from
  /// the first step give up before they have learned what to look for.
  std::int64_t attention_entropy_from = 0;
  /// Nats of loss that a unit of balance costs in models with experts (Fedus et al., Switch Transformers, 2022, α of
  /// eq. 4; mean over layers: RouterBalance). 0 = free: routers then tend to send every token to the same few experts.
  double expert_balance = 0;

  /// What step `step` (the first is 0) multiplies the update with.
  double rate_at(std::int64_t step) const;
  /// What a nat of mean attention entropy costs in step `step`.
  double entropy_price_at(std::int64_t step) const;
  /// Throws Error naming the setting, as one of `where`, that makes no sense (negative, NaN, a beta of 1, a warm-up
  /// beyond the schedule).
  void check(const std::string& where = "optimizer") const;
};

class AdamW {
 public:
  /// Moments start at zero.
  AdamW(const Parameters& parameters, OptimizerSettings settings);

  /// Moves every parameter by its gradient; gradients[i] belongs to parameters.all()[i]. `norm` is gradient_norm() of
  /// them, which must be finite.
  void step(Parameters& parameters, const std::vector<Tensor>& gradients, double norm, Backend& backend);

  std::int64_t steps() const { return steps_; }  ///< taken so far
  double next_rate() const { return settings_.rate_at(steps_); }
  const OptimizerSettings& settings() const { return settings_; }
  void set_settings(OptimizerSettings settings);  ///< from the next step on; throws as check()

  /// "first_moment/NAME", "second_moment/NAME" of every parameter, and "steps" (1, exact up to 2²⁴): everything that
  /// decides the next step besides parameters and settings. The tensors are copies.
  std::map<std::string, Tensor> state() const;
  /// The inverse. Throws Error naming the tensor that is missing or has another shape; then nothing has changed.
  void restore(const std::map<std::string, Tensor>& state);

 private:
  OptimizerSettings settings_;
  std::vector<std::string> names_;
  std::vector<Tensor> first_, second_;
  std::int64_t steps_ = 0;
};

/// √(Σ g²) over all tensors, in float64; not finite when any element is not.
double gradient_norm(const std::vector<Tensor>& gradients, Backend& backend);

}  // namespace headscope
