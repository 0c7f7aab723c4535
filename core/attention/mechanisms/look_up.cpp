// Attention as a look-up that is soft (Graves, Wayne & Danihelka, Neural Turing Machines, 2014: reading by a blend over
// addresses; Vaswani et al. 2017): a dictionary gives the one value whose key matches best, attention the average of
// all values, weighted by how well each key matches. As the scores are sharpened the second becomes the first. The hard
// one has no gradient: a score that moves a little changes nothing. Of keys that match equally well the first is taken.
// Shapes, of one query: scores, weights (1, m), output (1, d_v).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// 1 under the largest score, 0 elsewhere; all 0 where the query sees nothing.
Tensor hardest(const Tensor& scores, Index* which) {
  Tensor weights = Tensor::zeros(scores.shape());
  *which = -1;
  for (Index j = 0; j < scores.dim(1); ++j)
    if (std::isfinite(scores.at(0, j)) && (*which < 0 || scores.at(0, j) > scores.at(0, *which))) *which = j;
  if (*which >= 0) weights.ref(0, *which) = 1;
  return weights;
}

MechanismResult run_look_up(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const RowScores row = row_scores(in, values.number("query"));
  const double sharpness = values.number("sharpness");
  Index best = -1;
  const Tensor hard = hardest(row.scores, &best), soft = row_weights(row, sharpness);
  const Tensor hard_read = product(hard, in.v), soft_read = product(soft, in.v);
  const Tensor shown = shown_scores(row, sharpness);
  MechanismResult result;
  const auto step = [&](const char* id, const char* title, std::string formula, const Tensor& value,
                        MechanismStep::Range range, MechanismAxis columns, bool masked,
                        std::function<std::string(Index, Index)> explain) {
    result.steps.push_back({.id = id,
                            .title = title,
                            .formula = std::move(formula),
                            .value = value,
                            .range = range,
                            .rows = MechanismAxis::other,
                            .columns = columns,
                            .masked = masked ? row.hidden : std::vector<std::uint8_t>{},
                            .explain = std::move(explain)});
  };
  using enum MechanismStep::Range;
  step("row-scores", said("Match with each key"), say("query {}: q · k, times the sharpness", row.row), shown,
       signed_values, MechanismAxis::key, true, {});
  step("hard", said("Hard: arg max"), said("1 on the best match"), hard, probability, MechanismAxis::key, true, {});
  step("hard-read", said("What a dictionary returns"), said("the value of the best match"), hard_read, signed_values,
       MechanismAxis::dimension, false, explain_product(hard, in.v));
  step("soft", said("Soft: softmax"), "e^score ÷ " + row_sum_text(row), soft, probability, MechanismAxis::key, true,
       [shown, soft, sum = row_sum_text(row)](Index, Index j) {
         return fmt::format("e^{} ÷ {} = {}", text(shown.at(0, j)), sum, text(soft.at(0, j)));
       });
  step("soft-read", said("What attention returns"), said("Σ weight · value"), soft_read, signed_values,
       MechanismAxis::dimension, false, explain_product(soft, in.v));
  result.steps.push_back(given("v", said("V: what is stored"), in.v, MechanismAxis::key));

  const double size = norm(hard_read);
  const auto distance = [&](const Tensor& p) {
    return size > 0 ? norm(minus(product(p, in.v), hard_read)) / size : norm(product(p, in.v));
  };
  const auto largest = [](const Tensor& p) { return static_cast<double>(*std::ranges::max_element(p.values())); };
  MechanismCurve weight{said("Sharper scores: the largest weight goes to 1"),
                        said("sharpness"),
                        said("weight"),
                        {{"", {}, {}}},
                        true,
                        {}};
  MechanismCurve apart{said("… and the average to the one value"),
                       said("sharpness"),
                       said("‖soft − hard‖ ÷ ‖hard‖"),
                       {{"", {}, {}}},
                       true,
                       {}};
  for (int i = 0; i <= 40; ++i) {
    check(in);
    const double at = 0.05 * std::pow(2000.0, i / 40.0);
    const Tensor p = row_weights(row, at);
    weight.lines[0].x.push_back(at), weight.lines[0].y.push_back(largest(p));
    apart.lines[0].x.push_back(at), apart.lines[0].y.push_back(distance(p));
  }
  weight.marker = {sharpness, largest(soft)}, apart.marker = {sharpness, distance(soft)};
  result.curves = {std::move(weight), std::move(apart)};

  result.facts = {
      {said("Hard look-up"), best < 0 ? said("nothing") : say("key {}, and no other", best),
       said("arg max of the scores")},
      {said("Soft look-up"), best < 0 ? said("nothing") : say("{} of it", text(largest(soft))),
       said("weight of the best match")},
      {said("Keys that are blended"), say("{:.2f} of {}", best < 0 ? 0 : std::exp(mean_entropy(soft)), row.seen()),
       said("exp(entropy of the weights), of the keys that the query sees: 1 = a dictionary")},
      {said("Distance of the two"), text(distance(soft)), said("‖soft − hard‖ ÷ ‖hard‖ of what they return")},
      {said("Gradient, hard"), "0", said("arg max is flat: a score that moves a little changes nothing")},
      {said("Gradient, soft"), text(row_gradient(row, sharpness)), said("‖diag(p) − p pᵀ‖: what training can move")}};
  return result;
}

}  // namespace

Mechanism make_look_up() {
  Mechanism m;
  m.id = "look-up";
  m.title = to_say("Look-up, hard and soft: a dictionary against attention");
  m.name = to_say("Look-up, hard and soft");
  m.group = to_say("Softmax and scaling");
  m.source = "Graves et al. 2014";
  m.formula = to_say("v[arg max q·k]   against   Σ softmax(q·k) v");
  m.meaning = to_say(
      "A dictionary returns the one value under the best key. Attention returns an average of all values, each counted "
      "by how well its key matches: nothing is all or nothing, and so it can be learnt.");
  m.keywords =
      "soft dictionary hard attention argmax lookup database fuzzy addressing query key value library books search "
      "weighted average content-based";
  m.parameters = {
      number_parameter("sharpness", to_say("Sharpness"), to_say("Scores are multiplied by it."), 0.05, 100, 1, true),
      number_parameter("query", to_say("Query"), to_say("Which row, 0 the first, 1 the last."), 0, 1, 0.35)};
  m.run = run_look_up;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say(
        "A dictionary takes {}; attention gives {} and blends {} keys. Raise the sharpness, and the two meet. By "
        "hand has two sums of the literature as worked examples: a word among four, and six books.",
        nth(r.facts, 0).value, nth(r.facts, 1).value, nth(r.facts, 2).value);
  };
  return m;
}

}  // namespace headscope::mechanism
