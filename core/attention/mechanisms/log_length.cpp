// Scaling by the length (Su, Scale Operations of Attention Based on Entropy Invariance, 2021; Chiang & Cholak,
// Overcoming a Theoretical Limitation of Self-Attention, 2022): scores of a row with n visible keys are multiplied by
// ln n ÷ ln m, m the length in training, so that the entropy of a row stays where it was when the text grows.
// Shapes and cost as softmax attention.

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/attention/rule_edits.h"
#include "core/base/nth.h"

namespace headscope::mechanism {

namespace {

MechanismResult run(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const double trained = values.number("trained");
  const std::vector<Index> seen = seen_keys(*in.rule, in.n(), in.m());
  const Tensor plain = raw_scores(in);
  MechanismInput scaled = in;
  scaled.rule = length_scaled_rule(in.rule, seen, trained);
  std::vector<MechanismStep> steps;
  if (detail == Detail::steps) {
    Tensor scores = plain.copy(), factors = Tensor::zeros({in.n(), 1});
    for (Index i = 0; i < in.n(); ++i) {
      factors.ref(i, 0) = length_factor(nth(seen, i), trained);
      for (Index j = 0; j < in.m(); ++j) scores.ref(i, j) *= factors.at(i, 0);
    }
    add_inputs(steps, in);
    steps.push_back({.id = "plain",
                     .title = "Plain scores",
                     .formula = "scale · Q Kᵀ",
                     .value = plain,
                     .explain = explain_product_t(in.q, in.k, static_cast<double>(in.scale))});
    steps.push_back({.id = "factors",
                     .title = "ln n ÷ ln m",
                     .formula = "n = keys that the row sees",
                     .value = factors,
                     .range = MechanismStep::Range::positive,
                     .columns = MechanismAxis::other});
    steps.push_back({.id = "scores",
                     .title = "Scores",
                     .formula = "plain · ln n ÷ ln m",
                     .value = scores,
                     .explain = [plain, factors](Index i, Index j) {
                       return text(plain.at(i, j)) + " · " + text(factors.at(i, 0)) + " = " +
                              text(plain.at(i, j) * factors.at(i, 0));
                     }});
  }
  return softmax_of(scaled, plain, std::move(steps), detail);
}

}  // namespace

Mechanism make_log_length() {
  Mechanism m;
  m.id = "log-length";
  m.title = "Scaling by ln n";
  m.name = "log n scaling";
  m.group = "Exact softmax";
  m.source = "Su 2021; Chiang & Cholak 2022";
  m.formula = "O = softmax(ln n ÷ ln m · Q Kᵀ ÷ √d) V";
  m.meaning =
      "Softmax spreads out as a text grows. Scores that grow with ln n hold the entropy of a row where it was at the "
      "length m of training.";
  m.keywords =
      "entropy invariant logn length extrapolation dispersion invariance scaled softmax generalisation log n "
      "temperature by";
  m.parameters = {
      whole_parameter("trained", "Trained length m", "At this many keys nothing changes.", 2, 131072, 16, true)};
  m.run = run;
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return plain_cost(s); };
  m.chips = [](const MechanismShape& s, const MechanismValues&) { return softmax_chips(s, "ln n ÷ ln m · Kᵀ"); };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult&) -> std::string {
    return static_cast<double>(in.m()) > v.number("trained")
               ? "Rows with more keys than m are sharpened, shorter ones flattened."
               : "No row here has more keys than m: all are flattened, the first ones most.";
  };
  return m;
}

}  // namespace headscope::mechanism
