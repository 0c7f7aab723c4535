#pragma once
// The pass through the experts of one layer. With x (token, d_model) what the MLP reads:
//   logits = x W_r + b_r                                      (token, expert)
//   weights: 0 but for the experts that take the token        (ExpertConfig says how)
//   out = Σ_e weights[:, e] · MLP_e(x) (+ MLP_shared(x), or + σ(x · w) MLP_shared(x))
// Only the experts that take a token are multiplied with it: rows are gathered expert by expert.

#include <functional>
#include <span>
#include <vector>

#include "core/model/config.h"
#include "core/model/family.h"
#include "core/model/weights.h"
#include "core/tensor/backend.h"

namespace headscope {

struct Expert {
  Linear gate, up, down;  ///< gate: gated MLPs only
};
struct ExpertLayer {
  Linear router;
  Tensor correction;  ///< (expert) or undefined
  std::vector<Expert> each;
  Expert shared;       ///< undefined in most models
  Linear shared_gate;  ///< what it is weighed by, before σ; undefined: 1
  // Of ExpertConfig::beside; the stream passes the first two.
  NormWeights router_norm, in_norm, out_norm, dense_norm;
  Tensor output_weight;  ///< (expert): of ExpertConfig::weigh_output
  bool defined() const { return router.defined(); }
};

/// `linear(weight, bias, role)` makes a product ready to use.
ExpertLayer expert_layer(const RawExperts& raw,
                         const std::function<Linear(const Tensor&, const Tensor&, const char* role)>& linear);

/// softmax(logits) of one token, over all experts. logits (token, expert).
std::vector<double> router_probabilities(const Tensor& logits, Index token);

/// How evenly a router shares its tokens out (Fedus et al., Switch Transformers, 2022, eq. 4 to 6, where k = 1). Of n
/// tokens, each of which k of E experts take:
///   load_e = tokens that e took ÷ (k n),  probability_e = mean over tokens of softmax(logits)_e
///   value  = E Σ_e load_e · probability_e       1 where loads are even, E/k where the same k experts have it all
struct RouterBalance {
  std::vector<Index> tokens;              ///< (expert) how many it took
  std::vector<double> load, probability;  ///< (expert)
  double value = 0;
};
/// Both (token, expert); an expert took the tokens whose weight is not 0.
RouterBalance router_balance(const Tensor& logits, const Tensor& weights);

/// logits (token, expert) → weights of the same shape, 0 where an expert does not take the token. `correction` (expert)
/// may be undefined. With a tape, gradients flow to the logits; which experts were chosen is taken as given.
/// `balance_price`: what a unit of RouterBalance::value adds to the number that is differentiated.
/// `output_weight` (expert): what each weight is multiplied by; undefined: 1.
/// `lengths`: of several texts one after another, each of which ExpertConfig::capacity counts by itself; empty: one.
/// What a cache holds is not counted: a token that a generation adds finds every expert empty, as in transformers.
Tensor router_weights(const ExpertConfig& config, const Tensor& correction, Backend& backend, const Tensor& logits,
                      double balance_price = 0, const Tensor& output_weight = {}, std::span<const Index> lengths = {});

/// x (token, d_model), unit inner stride → (token, d_model). An expert takes the tokens whose weight is not 0; with a
/// tape, weights of 0 have no gradient.
Tensor through_experts(const ModelConfig& config, const ExpertLayer& experts, Backend& backend, const Tensor& x,
                       const Tensor& weights);

/// f(x W_gate + b) ∘ (x W_up + b), or where the configuration says so (min(g, limit) σ(α ·)) ∘ (clip(u, ± limit) + 1).
/// `xielu` is looked at where f is that.
Tensor gated(const ModelConfig& config, const Backend::Xielu& xielu, Backend& backend, const Tensor& gate,
             const Tensor& up, RowQueue* later = nullptr);

}  // namespace headscope
