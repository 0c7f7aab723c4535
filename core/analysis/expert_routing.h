#pragma once
// Which expert took which token, and how evenly a router shares its tokens out (Fedus et al., Switch Transformers,
// 2022). Of a layer with E experts, of which k take each of n tokens:
//   load_e   = tokens that e took ÷ (k n)             Σ_e = 1; 1/E where they are shared out evenly, which is chance
//   weight_e = Σ of e's weights ÷ Σ of all weights    likewise
//   used     = exp(−Σ_e load_e ln load_e)             as many experts as would do the same work evenly
//   balance  = E Σ_e load_e · mean over tokens of softmax(logits)_e    what Switch Transformers' auxiliary loss holds
//                                                     down: 1 where even, E/k where the same k experts
//                                                     have it all

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/model/model.h"
#include "core/trace/trace.h"

namespace headscope {

/// How many of their experts two tokens have in common, ÷ k, mean over pairs of positions. Where the same token comes
/// again (Xue et al., OpenMoE, 2024: routing by what the token is, not by what the text says), where one follows the
/// other (Jiang et al., Mixtral of Experts, 2024, § 5), and of any two positions, which is chance: what the loads alone
/// would give. NaN where there are no such pairs.
struct SharedExperts {
  double same = 0, next = 0, any = 0;
  Index same_pairs = 0;
};

struct ExpertRouting {
  int layer = 0;
  Tensor logits;                     ///< (token, expert) as recorded
  Tensor weights;                    ///< likewise, 0 where an expert did not take the token
  std::vector<double> load, weight;  ///< (expert)
  std::vector<Index> tokens;         ///< (expert) how many it took
  double used = 0, balance = 0;
  SharedExperts shared;
};

/// `ids`: of the tokens that are routed. REQUIRES as many as there are rows.
SharedExperts shared_experts(const Tensor& weights, std::span<const std::int32_t> ids);

struct RoutingReport {
  int experts = 0, per_token = 0;
  double chance = 0;                  ///< 1/E
  std::vector<ExpertRouting> layers;  ///< those that have experts
};

/// Throws Error in a model whose layers have one MLP each.
std::set<SiteKind> expert_routing_sites(const Model& model);
/// `trace` must have recorded expert_routing_sites(). Throws likewise.
RoutingReport read_expert_routing(const Model& model, const Trace& trace);

/// What a capacity would leave out (Fedus et al. 2022, § 2.2; also MiniMax-01, 2025): an expert takes so many tokens,
/// ⌈factor · k n ÷ E⌉, in the order of the text, and those behind go past it through the residual stream alone. The
/// models here were run without one.
struct DroppedTokens {
  Index capacity = 0;
  std::vector<std::pair<Index, Index>> places;  ///< token and expert, expert by expert
  Index whole = 0;                              ///< tokens that no expert takes any more
};
/// REQUIRES factor > 0.
DroppedTokens dropped_tokens(const ExpertRouting& routing, double factor);

/// The experts that took a token, the largest weight first.
std::vector<Index> experts_of(const ExpertRouting& routing, Index token);

}  // namespace headscope
