// Scaling by the length (Su, Scale Operations of Attention Based on Entropy Invariance, 2021; Chiang & Cholak,
// Overcoming a Theoretical Limitation of Self-Attention, 2022): scores of a row with n visible keys are multiplied by
// ln n ÷ ln m, m the length in training, so that the entropy of a row stays where it was when the text grows.
// Shapes and cost as softmax attention.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/attention/rule_edits.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// −Σ p ln p of every row in nats, and e to it: as many keys looked at alike would have the same entropy.
void add_entropies(const MechanismInput& in, const std::vector<Index>& seen, MechanismResult& result) {
  const Tensor before = softmax_reference(in).weights;
  Tensor nats = Tensor::zeros({in.n(), 1}), effective = Tensor::zeros({in.n(), 1});
  MechanismCurve curve{said("Entropy of every row: at most ln n, n keys alike"),           said("row"), said("nats"),
                       {{"softmax", {}, {}}, {"· ln n ÷ ln m", {}, {}}, {"ln n", {}, {}}}, false,       {}};
  for (Index i = 0; i < in.n(); ++i) {
    const double plain = mean_entropy(before.slice(0, i, i + 1)), own = mean_entropy(result.weights.slice(0, i, i + 1));
    nats.ref(i, 0) = static_cast<float>(own);
    effective.ref(i, 0) = nth(seen, i) > 0 ? static_cast<float>(std::exp(own)) : 0;
    const double lines[] = {plain, own, std::log(static_cast<double>(std::max<Index>(nth(seen, i), 1)))};
    for (std::size_t line = 0; line < std::size(lines); ++line) {
      curve.lines[line].x.push_back(static_cast<double>(i));
      curve.lines[line].y.push_back(lines[line]);
    }
  }
  const auto add = [&](const char* id, const char* title, const char* formula, const Tensor& value,
                       std::function<std::string(Index, Index)> explain) {
    MechanismStep step{.id = id, .title = title, .formula = formula, .value = value};
    step.range = MechanismStep::Range::positive;
    step.columns = MechanismAxis::other;
    step.explain = std::move(explain);
    result.steps.push_back(std::move(step));
  };
  add("entropy", said("Entropy H"), said("−Σ p ln p of each row, nats"), nats,
      [nats, seen](Index i, Index) -> std::string {
        if (nth(seen, i) == 0) return said("the row sees no key");
        return say("−Σ p ln p over {} keys = {} nats of at most ln {} = {}", nth(seen, i), brief(nats.at(i, 0)),
                   nth(seen, i), brief(std::log(static_cast<double>(std::max<Index>(nth(seen, i), 1)))));
      });
  add("effective", said("Effective tokens"), said("e^H: as many looked at alike"), effective,
      [nats, effective, seen](Index i, Index) -> std::string {
        if (nth(seen, i) == 0) return said("the row sees no key: 0 tokens");
        return say("e^{} = {} tokens", brief(nats.at(i, 0)), brief(effective.at(i, 0), true));
      });
  const double mean = mean_entropy(result.weights), plain = mean_entropy(before);
  result.facts.push_back({said("effective tokens e^H"), fmt::format("{:.1f} → {:.1f}", std::exp(plain), std::exp(mean)),
                          said("e to the mean entropy of the rows: softmax → this")});
  result.curves.push_back(std::move(curve));
}

MechanismResult run_log_length(const MechanismInput& in, const MechanismValues& values, Detail detail) {
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
                     .title = said("Plain scores"),
                     .formula = said("scale · Q Kᵀ"),
                     .value = plain,
                     .explain = explain_product_t(in.q, in.k, static_cast<double>(in.scale))});
    steps.push_back({.id = "factors",
                     .title = "ln n ÷ ln m",
                     .formula = said("n = keys that the row sees"),
                     .value = factors,
                     .range = MechanismStep::Range::positive,
                     .columns = MechanismAxis::other});
    steps.push_back({.id = "scores",
                     .title = said("Scores"),
                     .formula = said("plain · ln n ÷ ln m"),
                     .value = scores,
                     .explain = [plain, factors](Index i, Index j) {
                       return text(plain.at(i, j)) + " · " + text(factors.at(i, 0)) + " = " +
                              text(plain.at(i, j) * factors.at(i, 0));
                     }});
  }
  MechanismResult result = softmax_of(scaled, plain, std::move(steps), detail);
  if (detail == Detail::steps) add_entropies(in, seen, result);
  return result;
}

}  // namespace

Mechanism make_log_length() {
  Mechanism m;
  m.id = "log-length";
  m.title = to_say("Scaling by ln n");
  m.name = to_say("log n scaling");
  m.group = to_say("Exact softmax");
  m.source = "Su 2021; Chiang & Cholak 2022";
  m.formula = to_say("O = softmax(ln n ÷ ln m · Q Kᵀ ÷ √d) V");
  m.meaning = to_say(
      "Softmax spreads out as a text grows. Scores that grow with ln n hold the entropy of a row where it was at the "
      "length m of training.");
  m.keywords =
      "entropy invariant attention effective tokens per row per head per layer nats logn length extrapolation "
      "dispersion "
      "invariance scaled softmax generalisation log n "
      "temperature by";
  m.parameters = {whole_parameter("trained", to_say("Trained length m"), to_say("At this many keys nothing changes."),
                                  2, 131072, 16, true)};
  m.run = run_log_length;
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return plain_cost(s); };
  m.chips = [](const MechanismShape& s, const MechanismValues&) { return softmax_chips(s, "ln n ÷ ln m · Kᵀ"); };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult&) -> std::string {
    return static_cast<double>(in.m()) > v.number("trained")
               ? said("Rows with more keys than m are sharpened, shorter ones flattened.")
               : said("No row here has more keys than m: all are flattened, the first ones most.");
  };
  return m;
}

}  // namespace headscope::mechanism
