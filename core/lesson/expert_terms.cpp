// What formulas of a lesson may ask of experts: the numbers of the page *Experts*.

#include <fmt/format.h>

#include "core/analysis/expert_routing.h"
#include "core/base/nth.h"
#include "core/lesson/given.h"
#include "core/model/experts.h"

namespace headscope {

using jinja::Arguments;
using jinja::List;
using jinja::Value;

namespace {

RoutingReport routing_of(LessonRun& run) {
  const Model& model = *run.model().model;
  return read_expert_routing(model, run.recorded(expert_routing_sites(model)));
}

/// Of the layer that stands first among the arguments.
ExpertRouting routed(LessonRun& run, const Arguments& a) {
  const double layer = Given(run, a).number(0, "layer");
  for (ExpertRouting& each : routing_of(run).layers)
    if (each.layer == layer) return std::move(each);
  throw Error(a.where, "a layer that has experts", fmt::format("{}", layer));
}

Index expert_at(LessonRun& run, const Arguments& a, std::size_t at) {
  const double expert = Given(run, a).number(at, "expert");
  const int count = run.model().model->config().experts.count;
  if (!(expert >= 0 && expert < count) || expert != static_cast<double>(static_cast<Index>(expert)))
    throw Error(a.where, fmt::format("an expert from 0 to {}", count - 1), fmt::format("{}", expert));
  return static_cast<Index>(expert);
}

DroppedTokens dropped(LessonRun& run, const Arguments& a) {
  const double factor = Given(run, a).number(1, "factor");
  if (!(factor > 0)) throw Error(a.where, "a capacity factor above 0", fmt::format("{}", factor));
  return dropped_tokens(routed(run, a), factor);
}

constexpr LessonTerm terms_of_experts[] = {
    {"experts()", "of a layer that has some",
     [](LessonRun& run, const Arguments&) -> Value { return std::int64_t{routing_of(run).experts}; }},
    {"experts_per_token()", "as many of them take each token",
     [](LessonRun& run, const Arguments&) -> Value { return std::int64_t{routing_of(run).per_token}; }},
    {"experts_of(layer, row)", "a list of those that take the token there, the largest weight first",
     [](LessonRun& run, const Arguments& a) -> Value {
       List out;
       for (const Index e : experts_of(routed(run, a), Given(run, a).row(1)))
         out.emplace_back(static_cast<std::int64_t>(e));
       return out;
     }},
    {"expert_weight(layer, row, expert)", "what the expert's output is multiplied by there, 0 where it does not work",
     [](LessonRun& run, const Arguments& a) -> Value {
       return static_cast<double>(routed(run, a).weights.at(Given(run, a).row(1), expert_at(run, a, 2)));
     }},
    {"router_logit(layer, row, expert)", "what the router says of the expert there",
     [](LessonRun& run, const Arguments& a) -> Value {
       return static_cast<double>(routed(run, a).logits.at(Given(run, a).row(1), expert_at(run, a, 2)));
     }},
    {"router_probability(layer, row, expert)", "softmax of these over all experts",
     [](LessonRun& run, const Arguments& a) -> Value {
       return nth(router_probabilities(routed(run, a).logits, Given(run, a).row(1)), expert_at(run, a, 2));
     }},
    {"expert_tokens(layer, expert)", "how many tokens of the text it takes",
     [](LessonRun& run, const Arguments& a) -> Value {
       return static_cast<std::int64_t>(nth(routed(run, a).tokens, expert_at(run, a, 1)));
     }},
    {"expert_load(layer, expert)", "these ÷ (tokens · experts per token); 1 ÷ experts where all take as many",
     [](LessonRun& run, const Arguments& a) -> Value { return nth(routed(run, a).load, expert_at(run, a, 1)); }},
    {"busiest_expert(layer)", "the expert that takes most tokens",
     [](LessonRun& run, const Arguments& a) -> Value {
       const auto tokens = routed(run, a).tokens;
       return static_cast<std::int64_t>(std::ranges::max_element(tokens) - tokens.begin());
     }},
    {"experts_used(layer)", "exp of the entropy of the loads: as many as would do the same work evenly",
     [](LessonRun& run, const Arguments& a) -> Value { return routed(run, a).used; }},
    {"expert_balance(layer)", "experts · Σ load · mean router probability: 1 where even",
     [](LessonRun& run, const Arguments& a) -> Value { return routed(run, a).balance; }},
    {"shared_experts(layer, pairs)",
     "the share of their experts that two tokens have in common, mean over pairs: \"same\" (the same token again), "
     "\"next\" (one behind the other), \"any\" (chance)",
     [](LessonRun& run, const Arguments& a) -> Value {
       const std::string pairs = Given(run, a).text(1, "pairs");
       const SharedExperts shared = routed(run, a).shared;
       if (pairs == "same") return shared.same;
       if (pairs == "next") return shared.next;
       if (pairs == "any") return shared.any;
       throw Error(a.where, "\"same\", \"next\" or \"any\"", "\"" + excerpt(pairs, 40) + "\"");
     }},
    {"expert_capacity(layer, factor)", "tokens that an expert would have room for at this capacity factor",
     [](LessonRun& run, const Arguments& a) -> Value { return static_cast<std::int64_t>(dropped(run, a).capacity); }},
    {"dropped_places(layer, factor)", "how often an expert would have no room for a token then",
     [](LessonRun& run, const Arguments& a) -> Value {
       return static_cast<std::int64_t>(dropped(run, a).places.size());
     }},
    {"dropped_tokens(layer, factor)", "tokens that no expert would take any more",
     [](LessonRun& run, const Arguments& a) -> Value { return static_cast<std::int64_t>(dropped(run, a).whole); }},
};

}  // namespace

std::span<const LessonTerm> expert_terms() {
  return terms_of_experts;
}

}  // namespace headscope
