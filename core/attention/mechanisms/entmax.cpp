// Sparsemax (Martins & Astudillo, From Softmax to Sparsemax, 2016) and α-entmax (Peters, Niculae & Martins, Sparse
// Sequence-to-Sequence Models, 2019; Correia, Niculae & Martins, Adaptively Sparse Transformers, 2019).
//   p = argmax over the simplex of pᵀs + H_α(p)  ⇔  p_j = [(α − 1) s_j − τ]₊^(1/(α−1)) with τ such that Σ p = 1.
// α = 2 is solved by sorting, exactly; any other α > 1 by bisection on τ, whose bracket halves until it is as narrow as
// a double can tell; α = 1 is softmax. Shapes as softmax attention. Cost: softmax attention's, and about 60 passes over
// each row (bisection) or a sort of it.

#include "core/attention/mechanisms/entmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/base/special_values.h"
#include "core/base/words.h"
#include "core/trace/row_stats.h"

namespace headscope::mechanism {

namespace {

constexpr double softmax_below = 1.0005;  // where (α − 1) is too small for the power to be told from exp
constexpr int halvings = 60;

/// τ of the projection onto the simplex (Held et al. 1974): the mean excess of the largest scores that stay positive.
double sparsemax_threshold(std::vector<double> scores) {
  std::ranges::sort(scores, std::greater{});
  double sum = 0, threshold = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    sum += scores[k];
    const double candidate = (sum - 1) / static_cast<double>(k + 1);
    if (scores[k] <= candidate) break;
    threshold = candidate;
  }
  return threshold;
}

MechanismResult run_entmax(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const double alpha = values.number("alpha");
  const Tensor plain = raw_scores(in);
  Tensor scores = plain.copy();
  apply_rule(*in.rule, scores);
  MechanismResult result;
  result.weights = scores.copy();
  for (Index i = 0; i < in.n(); ++i) {
    check(in);
    entmax_row({&result.weights.ref(i, 0), static_cast<std::size_t>(in.m())}, alpha);
  }
  result.kind = MapKind::sparse;
  result.output = product(result.weights, in.v);
  Index zeros = 0, seen = 0;
  for (std::size_t c = 0; c < scores.values().size(); ++c)
    if (scores.values()[c] != -float_infinity) ++seen, zeros += result.weights.values()[c] == 0;
  result.facts.push_back(
      {said("Exact zeros"),
       say("{:.0f} % of {} cells", seen ? 100.0 * static_cast<double>(zeros) / static_cast<double>(seen) : 0.0, seen),
       said("weights that are 0 and not merely small, among the cells that the mask leaves")});
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  Tensor shown = scores.copy();
  hide(hidden, shown);
  result.steps.push_back({.id = "scores",
                          .title = said("Masked scores"),
                          .formula = say("scale · Q Kᵀ, mask: {}", in.rule->describe()),
                          .value = shown,
                          .masked = hidden,
                          .explain = explain_product_t(in.q, in.k, static_cast<double>(in.scale))});
  // The threshold is read back from the largest weight: p = [(α − 1) s − τ]₊^(1/(α−1)).
  if (alpha > softmax_below) {
    Tensor thresholds = Tensor::zeros({in.n(), 1});
    for (Index i = 0; i < in.n(); ++i) {
      Index best = 0;
      for (Index j = 0; j < in.m(); ++j)
        if (result.weights.at(i, j) > result.weights.at(i, best)) best = j;
      thresholds.ref(i, 0) = static_cast<float>((alpha - 1) * static_cast<double>(shown.at(i, best)) -
                                                std::pow(static_cast<double>(result.weights.at(i, best)), alpha - 1));
    }
    result.steps.push_back({.id = "threshold",
                            .title = "τ",
                            .formula = said("(α − 1) s must exceed it"),
                            .value = thresholds,
                            .columns = MechanismAxis::other});
  }
  result.steps.push_back({.id = "weights",
                          .title = said("Weights P"),
                          .formula = "[(α − 1) s − τ]₊ ^ 1/(α − 1)",
                          .value = result.weights,
                          .range = MechanismStep::Range::probability,
                          .masked = std::move(hidden)});
  result.steps.push_back(output_step(result.weights, in.v, result.output, "P V"));
  MechanismCurve curve{said("Exact zeros over α"), "α", said("% of cells"), {{"", {}, {}}}, false, {}};
  for (int i = 0; i <= 12; ++i) {
    const double a = 1 + i / 12.0;
    Index none = 0;
    Tensor row = scores.copy();
    for (Index r = 0; r < in.n(); ++r) {
      check(in);
      entmax_row({&row.ref(r, 0), static_cast<std::size_t>(in.m())}, a);
    }
    for (std::size_t c = 0; c < row.values().size(); ++c)
      none += scores.values()[c] != -float_infinity && row.values()[c] == 0;
    curve.lines[0].x.push_back(a);
    curve.lines[0].y.push_back(seen ? 100.0 * static_cast<double>(none) / static_cast<double>(seen) : 0);
  }
  curve.marker = {alpha, seen ? 100.0 * static_cast<double>(zeros) / static_cast<double>(seen) : 0};
  result.curves.push_back(std::move(curve));
  return result;
}

}  // namespace

void entmax_row(std::span<float> row, double alpha) {
  if (alpha < softmax_below) return softmax_row(row);
  std::vector<double> scores;
  for (const float s : row)
    if (s != -float_infinity) scores.push_back((alpha - 1) * static_cast<double>(s));
  if (scores.empty()) {
    std::ranges::fill(row, 0.0f);
    return;
  }
  const double max = *std::ranges::max_element(scores), power = 1 / (alpha - 1);
  for (double& s : scores) s -= max;
  double threshold = 0;
  if (alpha == 2) {
    threshold = sparsemax_threshold(scores);
  } else {
    // Σ p falls from ≥ 1 to 0 as τ goes from −1 (the largest alone has weight 1) to 0.
    double low = -1, high = 0;
    for (int i = 0; i < halvings; ++i) {
      threshold = (low + high) / 2;
      double sum = 0;
      for (const double s : scores) sum += s > threshold ? std::pow(s - threshold, power) : 0;
      (sum >= 1 ? low : high) = threshold;
    }
  }
  double sum = 0;
  for (const double s : scores) sum += s > threshold ? std::pow(s - threshold, power) : 0;
  for (float& s : row) {
    const double excess = s == -float_infinity ? -1 : (alpha - 1) * static_cast<double>(s) - max - threshold;
    s = excess > 0 ? static_cast<float>(std::pow(excess, power) / sum) : 0;
  }
}

Mechanism make_entmax() {
  Mechanism m;
  m.id = "entmax";
  m.title = to_say("Sparsemax and α-entmax");
  m.name = to_say("Sparsemax / α-entmax");
  m.group = to_say("Exact softmax");
  m.source = "Martins & Astudillo 2016; Peters et al. 2019";
  m.formula = "pⱼ = [(α − 1) sⱼ − τ]₊ ^ 1/(α − 1)";
  m.meaning = to_say(
      "Softmax never gives exactly 0. Between α = 1 (softmax) and α = 2 (sparsemax) the weights below a threshold "
      "vanish altogether; heads can learn how sparse they want to be.");
  m.keywords = "alpha sparse adaptively sparse simplex projection sparsemax attention";
  m.parameters = {number_parameter("alpha", "α", to_say("1 is softmax, 1.5 entmax, 2 sparsemax."), 1, 2, 1.5)};
  m.run = run_entmax;
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return plain_cost(s); };
  m.chips = [](const MechanismShape& s, const MechanismValues&) {
    auto chips = softmax_chips(s, "· Kᵀ");
    chips[2].text = say("α-entmax {}×{}", s.rows(), s.n);
    return chips;
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult& r) -> std::string {
    if (v.number("alpha") < softmax_below) return said("At α = 1 this is softmax: difference and error are 0.");
    return r.facts.empty() ? "" : say("{} are exactly 0; softmax has none.", r.facts[0].value);
  };
  return m;
}

}  // namespace headscope::mechanism
