// Softmax saturates: the gradient of a row of weights with respect to its scores is J = diag(p) − p pᵀ (Vaswani et al.
// 2017, footnote 4, why scores are scaled). As scores grow p becomes one-hot and J vanishes: nothing can be learnt
// there. Shapes: p (1, m), J (m, m). ‖J‖ is at most ½ (two keys with ½ each), 0 for a one-hot row.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

Tensor jacobian(const Tensor& p) {
  const Index m = p.dim(1);
  Tensor out = Tensor::zeros({m, m});
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < m; ++j) out.ref(i, j) = (i == j ? p.at(0, i) : 0.0f) - p.at(0, i) * p.at(0, j);
  return out;
}

MechanismResult run_saturation(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const RowScores row = row_scores(in, values.number("query"));
  const double chosen = values.number("sharpness"), size = row_gradient(row, chosen);
  const Tensor p = row_weights(row, chosen), j = jacobian(p);
  MechanismResult result;
  result.steps.push_back({.id = "row-scores",
                          .title = said("Scores of the row"),
                          .formula = say("query {}, times the sharpness", row.row),
                          .value = shown_scores(row, chosen),
                          .masked = row.hidden,
                          .first_row = row.row});
  result.steps.push_back({.id = "p",
                          .title = "p",
                          .formula = say("softmax of the row: e^score ÷ {}", row_sum_text(row)),
                          .value = p,
                          .range = MechanismStep::Range::probability,
                          .masked = row.hidden,
                          .first_row = row.row});
  result.steps.push_back({.id = "jacobian",
                          .title = "J",
                          .formula = "diag(p) − p pᵀ",
                          .value = j,
                          .rows = MechanismAxis::key,
                          .explain = [p](Index a, Index b) {
                            return a == b ? fmt::format("{} − {}² = {}", text(p.at(0, a)), text(p.at(0, a)),
                                                        text(p.at(0, a) * (1 - p.at(0, a))))
                                          : fmt::format("−{} · {}", text(p.at(0, a)), text(p.at(0, b)));
                          }});
  MechanismCurve curve{said("Size of the gradient as scores grow"), said("sharpness"), "‖J‖", {{"", {}, {}}}, true, {}};
  for (int i = 0; i <= 40; ++i) {
    check(in);
    const double sharpness = 0.05 * std::pow(2000.0, i / 40.0);
    curve.lines[0].x.push_back(sharpness);
    curve.lines[0].y.push_back(row_gradient(row, sharpness));
  }
  curve.marker = {chosen, size};
  result.curves.push_back(std::move(curve));
  float most = 0;
  for (const float x : p.values()) most = std::max(most, x);
  result.facts = {{"‖J‖", text(size), said("Frobenius norm of the Jacobian; 0 for a one-hot row")},
                  {said("Largest weight"), text(most), said("of the row")}};
  return result;
}

}  // namespace

Mechanism make_saturation() {
  Mechanism m;
  m.id = "saturation";
  m.title = to_say("Softmax saturates: the gradient vanishes");
  m.name = to_say("Saturation, vanishing gradient");
  m.group = to_say("Softmax and scaling");
  m.source = "Vaswani et al. 2017";
  m.formula = "∂p ÷ ∂s = diag(p) − p pᵀ";
  m.meaning = to_say(
      "The derivative of a row of weights by its scores. A flat row answers to every score, a one-hot row to none: "
      "training cannot move it any more.");
  m.keywords = "jacobian gradient vanishing softmax saturation gradients large scores one-hot temperature";
  m.parameters = {
      number_parameter("sharpness", to_say("Sharpness"), to_say("Scores are multiplied by it."), 0.05, 100, 1, true),
      number_parameter("query", to_say("Query"), to_say("Which row, 0 the first, 1 the last."), 0, 1, 1)};
  m.run = run_saturation;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say("The largest weight is {}, the gradient {}: raise the sharpness and watch it go to 0.", r.facts[1].value,
               r.facts[0].value);
  };
  return m;
}

}  // namespace headscope::mechanism
