#include "core/analysis/expert_routing.h"

#include <algorithm>
#include <cmath>

#include "core/analysis/need.h"
#include "core/base/nth.h"

namespace headscope {

namespace {
void check_experts(const Model& model) {
  if (!model.config().experts.anywhere())
    throw Error(model.config().name, "a model whose layers have experts",
                model.config().dims.d_mlp > 0 ? "one MLP in each layer, for every token" : "layers without an MLP");
}

/// Mean over tokens of softmax(logits).
std::vector<double> mean_probability(const Tensor& logits) {
  std::vector<double> mean(static_cast<std::size_t>(logits.dim(1)), 0.0);
  for (Index token = 0; token < logits.dim(0); ++token) {
    double most = static_cast<double>(logits.at(token, 0)), total = 0;
    for (Index e = 0; e < logits.dim(1); ++e) most = std::max(most, static_cast<double>(logits.at(token, e)));
    for (Index e = 0; e < logits.dim(1); ++e) total += std::exp(static_cast<double>(logits.at(token, e)) - most);
    for (Index e = 0; e < logits.dim(1); ++e)
      nth(mean, e) +=
          std::exp(static_cast<double>(logits.at(token, e)) - most) / total / static_cast<double>(logits.dim(0));
  }
  return mean;
}
}  // namespace

std::set<SiteKind> expert_routing_sites(const Model& model) {
  check_experts(model);
  return {SiteKind::router_logits, SiteKind::router_weights};
}

RoutingReport read_expert_routing(const Model& model, const Trace& trace) {
  check_experts(model);
  const ExpertConfig& config = model.config().experts;
  RoutingReport out{config.count, config.per_token, 1.0 / config.count, {}};
  for (int layer = 0; layer < model.config().dims.layers; ++layer) {
    if (!config.at(layer)) continue;
    ExpertRouting& routing = out.layers.emplace_back();
    routing.layer = layer;
    routing.weights = need(trace, {SiteKind::router_weights, layer});
    const std::vector<double> mean = mean_probability(need(trace, {SiteKind::router_logits, layer}));
    double all = 0, total = 0;  // tokens taken, and weights
    for (Index e = 0; e < config.count; ++e) {
      Index tokens = 0;
      double sum = 0;
      for (Index i = 0; i < routing.weights.dim(0); ++i) {
        tokens += routing.weights.at(i, e) != 0;
        sum += static_cast<double>(routing.weights.at(i, e));
      }
      routing.tokens.push_back(tokens);
      routing.weight.push_back(sum);
      all += static_cast<double>(tokens), total += sum;
    }
    double entropy = 0;
    for (Index e = 0; e < config.count; ++e) {
      const double load = all > 0 ? static_cast<double>(nth(routing.tokens, e)) / all : 0;
      routing.load.push_back(load);
      nth(routing.weight, e) = total != 0 ? nth(routing.weight, e) / total : 0;
      entropy -= load > 0 ? load * std::log(load) : 0;
      routing.balance += config.count * load * nth(mean, e);
    }
    routing.used = std::exp(entropy);
  }
  return out;
}

DroppedTokens dropped_tokens(const ExpertRouting& routing, double factor) {
  const Index n = routing.weights.dim(0), experts = routing.weights.dim(1);
  Index taken = 0;
  for (const Index tokens : routing.tokens) taken += tokens;
  DroppedTokens out;
  // 1.1 · 100 ÷ 10 is a little above 11 in doubles.
  const double share = factor * static_cast<double>(taken) / static_cast<double>(experts);
  out.capacity = static_cast<Index>(std::ceil(share * (1 - 1e-12)));
  std::vector<Index> left(static_cast<std::size_t>(n), 0);
  for (Index e = 0; e < experts; ++e) {
    Index full = 0;
    for (Index token = 0; token < n; ++token) {
      if (routing.weights.at(token, e) == 0) continue;
      if (full < out.capacity)
        ++full, ++nth(left, token);
      else
        out.places.emplace_back(token, e);
    }
  }
  out.whole = std::ranges::count(left, 0);
  return out;
}

std::vector<Index> experts_of(const ExpertRouting& routing, Index token) {
  std::vector<Index> taken;
  for (Index e = 0; e < routing.weights.dim(1); ++e)
    if (routing.weights.at(token, e) != 0) taken.push_back(e);
  std::ranges::stable_sort(
      taken, [&](Index a, Index b) { return routing.weights.at(token, a) > routing.weights.at(token, b); });
  return taken;
}

}  // namespace headscope
