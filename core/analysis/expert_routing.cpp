#include "core/analysis/expert_routing.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <utility>

#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/model/experts.h"

namespace headscope {

namespace {
void check_experts(const Model& model) {
  if (!model.config().experts.anywhere())
    throw Error(model.config().name, "a model whose layers have experts",
                model.config().dims.d_mlp > 0 ? "one MLP in each layer, for every token" : "layers without an MLP");
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
  std::vector<std::int32_t> ids;
  for (const Token& token : trace.queries()) ids.push_back(token.id);
  for (int layer = 0; layer < model.config().dims.layers; ++layer) {
    if (!config.at(layer)) continue;
    ExpertRouting& routing = out.layers.emplace_back();
    routing.layer = layer;
    routing.weights = need(trace, {SiteKind::router_weights, layer});
    routing.logits = need(trace, {SiteKind::router_logits, layer});
    routing.shared =
        shared_experts(routing.weights, std::span(ids).first(static_cast<std::size_t>(routing.weights.dim(0))));
    RouterBalance balance = router_balance(routing.logits, routing.weights);
    routing.tokens = std::move(balance.tokens);
    routing.load = std::move(balance.load);
    routing.balance = balance.value;
    double total = 0, entropy = 0;
    for (Index e = 0; e < config.count; ++e) {
      double sum = 0;
      for (Index i = 0; i < routing.weights.dim(0); ++i) sum += static_cast<double>(routing.weights.at(i, e));
      routing.weight.push_back(sum);
      total += sum;
      const double load = nth(routing.load, e);
      entropy -= load > 0 ? load * std::log(load) : 0;
    }
    for (double& weight : routing.weight) weight = total != 0 ? weight / total : 0;
    routing.used = std::exp(entropy);
  }
  return out;
}

SharedExperts shared_experts(const Tensor& weights, std::span<const std::int32_t> ids) {
  const Index n = weights.dim(0), experts = weights.dim(1);
  assert(static_cast<Index>(ids.size()) == n);
  double places = 0;
  for (Index i = 0; i < n; ++i)
    for (Index e = 0; e < experts; ++e) places += weights.at(i, e) != 0;
  const double each = places / static_cast<double>(n);  // experts of a token
  // Of positions of one kind, pairs that an expert took both of, ÷ pairs ÷ experts of a token.
  const auto pairs = [](double of) { return of * (of - 1) / 2; };
  const auto within = [&](std::span<const Index> positions) {
    double both = 0;
    for (Index e = 0; e < experts; ++e)
      both +=
          pairs(static_cast<double>(std::ranges::count_if(positions, [&](Index i) { return weights.at(i, e) != 0; })));
    return both;
  };
  std::vector<Index> all;
  std::map<std::int32_t, std::vector<Index>> of;
  for (Index i = 0; i < n; ++i) all.push_back(i), of[nth(ids, i)].push_back(i);
  SharedExperts out;
  double same = 0, next = 0;
  for (const auto& [id, positions] : of) {
    same += within(positions);
    out.same_pairs += static_cast<Index>(pairs(static_cast<double>(positions.size())));
  }
  for (Index i = 0; i + 1 < n; ++i)
    for (Index e = 0; e < experts; ++e) next += weights.at(i, e) != 0 && weights.at(i + 1, e) != 0;
  out.same = out.same_pairs > 0 ? same / static_cast<double>(out.same_pairs) / each : nan;
  out.next = n > 1 ? next / static_cast<double>(n - 1) / each : nan;
  out.any = n > 1 ? within(all) / pairs(static_cast<double>(n)) / each : nan;
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
