// Attention dropout (Vaswani et al. 2017, § 5.4; Srivastava et al. 2014): while training each weight is set to 0 with
// probability p and the others are divided by 1 − p, so that in expectation nothing changes:
//   w̃ = w b ÷ (1 − p),  b ~ Bernoulli(1 − p):   E[w̃] = w,   Var[w̃] = w² p ÷ (1 − p),
//   Var[Σ_j w̃_j v_j] = Σ_j w_j² v_j² p ÷ (1 − p).
// Rows then no longer sum to 1. When a model is used nothing is dropped.
// Shapes: weights (n, m), output (n, d_v). Cost: draws · n m.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

Tensor dropped(const Tensor& weights, double p, Random& random) {
  return each(weights, [&](float w) {
    const bool stays = random.uniform() >= p;
    return stays ? static_cast<float>(static_cast<double>(w) / (1 - p)) : 0.0f;
  });
}

/// Σ over all outputs of Σ_j w_j² v_j²: times p ÷ (1 − p) the variance.
double squares(const Tensor& weights, const Tensor& v) {
  double sum = 0;
  for (Index j = 0; j < weights.dim(1); ++j) {
    double weight = 0;
    for (Index i = 0; i < weights.dim(0); ++i) weight += std::pow(static_cast<double>(weights.at(i, j)), 2);
    sum += weight * std::pow(norm(v.slice(0, j, j + 1)), 2);
  }
  return sum;
}

MechanismResult run_dropout(const MechanismInput& in, const MechanismValues& values, Detail) {
  const MechanismResult full = softmax_reference(in);
  const double p = values.number("p");
  // As many as leave the page quick: 20 million weights in all.
  const auto draws = std::min<Index>(values.whole("draws"), std::max<Index>(20'000'000 / full.weights.size(), 2));
  Random random(values.seed());
  const Tensor one = dropped(full.weights, p, random);
  Tensor mean = Tensor::zeros(full.output.shape());
  double apart = 0, least = 1e300, most = -1e300;
  random = Random(values.seed());
  for (Index draw = 0; draw < draws; ++draw) {
    check(in);
    const Tensor w = dropped(full.weights, p, random);
    const Tensor out = product(w, in.v);
    apart += std::pow(norm(minus(out, full.output)), 2) / static_cast<double>(draws);
    for (std::size_t c = 0; c < mean.values().size(); ++c)
      mean.mutable_values()[c] += out.values()[c] / static_cast<float>(draws);
    for (Index i = 0; i < in.n(); ++i) {
      double sum = 0;
      for (Index j = 0; j < in.m(); ++j) sum += static_cast<double>(w.at(i, j));
      least = std::min(least, sum), most = std::max(most, sum);
    }
  }
  MechanismResult result;
  const auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  result.steps.push_back({.id = "weights",
                          .title = said("Weights"),
                          .formula = "softmax",
                          .value = full.weights,
                          .range = MechanismStep::Range::probability,
                          .masked = hidden});
  result.steps.push_back({.id = "dropped",
                          .title = said("One training step's"),
                          .formula = say("0 with probability {}, others ÷ {}", text(p), text(1 - p)),
                          .value = one,
                          .range = MechanismStep::Range::positive,
                          .masked = hidden,
                          .explain = [w = full.weights, one, p](Index i, Index j) {
                            return one.at(i, j) == 0
                                       ? say("dropped: {} → 0", text(w.at(i, j)))
                                       : text(w.at(i, j)) + " ÷ " + text(1 - p) + " = " + text(one.at(i, j));
                          }});
  result.steps.push_back(output_step(full.weights, in.v, full.output, said("nothing dropped")));
  result.steps.push_back({.id = "mean",
                          .title = said("Mean output"),
                          .formula = say("of {} draws", draws),
                          .value = mean,
                          .columns = MechanismAxis::dimension});
  check(in);
  const double spread = squares(full.weights, in.v), expected = spread * p / (1 - p), size = norm(full.output);
  const auto relative = [&](double squares) { return size > 0 ? std::sqrt(squares) / size : std::sqrt(squares); };
  MechanismCurve curve{
      said("How far one draw's output lies from the expected one"), "p", "‖ΔO‖ ÷ ‖O‖", {{"", {}, {}}}, false, {}};
  for (int i = 0; i <= 36; ++i) {
    const double at = 0.025 * i;
    curve.lines[0].x.push_back(at), curve.lines[0].y.push_back(relative(spread * at / (1 - at)));
  }
  curve.marker = {p, relative(expected)};
  result.curves.push_back(std::move(curve));
  result.facts = {
      {said("Mean output − output"), text(relative(std::pow(norm(minus(mean, full.output)), 2))),
       say("‖difference‖ ÷ ‖output‖, {} draws: falls with their root", draws)},
      {said("One draw − output, measured"), text(relative(apart)), said("root mean square over the draws ÷ ‖output‖")},
      {said("… and by the formula"), text(relative(expected)), said("√(Σ w² v² p ÷ (1 − p)) ÷ ‖output‖")},
      {said("Row sums"), fmt::format("{} … {}", text(least), text(most)),
       said("of the dropped weights, over all draws")}};
  return result;
}

}  // namespace

Mechanism make_dropout() {
  Mechanism m;
  m.id = "dropout";
  m.title = to_say("Dropout of weights: the mean is kept, the variance is the price");
  m.name = to_say("Dropout of weights");
  m.group = to_say("Softmax and scaling");
  m.source = "Vaswani et al. 2017";
  m.formula = to_say("w̃ = w b ÷ (1 − p):  E[w̃] = w,  Var[w̃] = w² p ÷ (1 − p)");
  m.meaning = to_say(
      "While training, weights are dropped at random and the rest made larger, so that no head can rely on one key. "
      "On average the output stays; each single step sees a noisy one.");
  m.keywords =
      "attention dropout dropout regularisation overfitting training p_attn drop attention weights expectation "
      "variance Bernoulli";
  m.parameters = {number_parameter("p", to_say("Dropped p"), to_say("Of the weights, on average."), 0, 0.9, 0.1),
                  whole_parameter("draws", to_say("Draws"), to_say("Whose mean is taken."), 2, 1000, 200, true),
                  seed_parameter()};
  m.run = run_dropout;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say(
        "One draw lies {} from the output, the mean of all only {}: dropping adds noise, no bias. Rows of "
        "a draw sum to {}.",
        nth(r.facts, 1).value, nth(r.facts, 0).value, nth(r.facts, 3).value);
  };
  return m;
}

}  // namespace headscope::mechanism
