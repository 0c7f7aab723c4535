// The score taken apart: q·k = ‖q‖ ‖k‖ cos θ (after Su, Key Normalization Aids Length Extrapolation, 2023; cosine
// attention as in Liu et al., Swin Transformer V2, 2022). The norm of a query sharpens or flattens its whole row, the
// norm of a key makes its whole column likelier, the angle alone ties one to the other.
// As in Swin V2 a norm that is switched off is 1, and scores are cos θ ÷ τ without √d: τ is learnt there, for each
// head, from 1/τ = 10, never below 0.01. Ours: τ is a slider that begins there; with both norms on the score is the
// plain one, whatever τ; and a norm that is off may instead stay at its mean over the text, so that the scale of the
// scores stays. That mean looks ahead: under a causal mask early rows then know later tokens. Shapes: norms (n, 1) and
// (m, 1), cosines (n, m). Cost: that of softmax attention and (n + m) d for the norms.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

Tensor norms_of(const Tensor& x) {
  Tensor out = Tensor::zeros({x.dim(0), 1});
  for (Index i = 0; i < x.dim(0); ++i) {
    double sum = 0;
    for (Index c = 0; c < x.dim(1); ++c) sum += static_cast<double>(x.at(i, c)) * static_cast<double>(x.at(i, c));
    out.ref(i, 0) = static_cast<float>(std::sqrt(sum));
  }
  return out;
}

double mean_of(const Tensor& x) {
  double sum = 0;
  for (const float value : x.values()) sum += static_cast<double>(value);
  return sum / static_cast<double>(std::max<Index>(x.size(), 1));
}

bool both_norms(const MechanismValues& values) {
  return values.on("query-norm") && values.on("key-norm");
}

MechanismResult run_cosine(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const Tensor q_norm = norms_of(in.q), k_norm = norms_of(in.k);
  Tensor cosines = product_t(in.q, in.k);
  for (Index i = 0; i < in.n(); ++i)
    for (Index j = 0; j < in.m(); ++j) {
      const float both = q_norm.at(i, 0) * k_norm.at(j, 0);
      cosines.ref(i, j) = both > 0 ? cosines.at(i, j) / both : 0;
    }
  const bool means = values.whole("off-norm") == 1, plain = both_norms(values);
  const auto kept = [means](const Tensor& norm, bool on) {
    return on ? norm : Tensor::full(norm.shape(), means ? static_cast<float>(mean_of(norm)) : 1.0f);
  };
  const Tensor a = kept(q_norm, values.on("query-norm")), b = kept(k_norm, values.on("key-norm"));
  const bool scaled = means || plain;
  const double unit =
      scaled ? static_cast<double>(in.scale) : 1 / (values.number("temperature") * static_cast<double>(in.temperature));
  const auto factor = static_cast<float>(unit * values.number("sharpness"));
  Tensor scores = Tensor::zeros({in.n(), in.m()});
  for (Index i = 0; i < in.n(); ++i)
    for (Index j = 0; j < in.m(); ++j) scores.ref(i, j) = factor * a.at(i, 0) * b.at(j, 0) * cosines.at(i, j);
  std::vector<MechanismStep> steps;
  if (detail == Detail::steps) {
    add_inputs(steps, in);
    steps.push_back({.id = "q-norm",
                     .title = "‖q‖",
                     .formula = said("how sharp the row is"),
                     .value = q_norm,
                     .range = MechanismStep::Range::positive,
                     .columns = MechanismAxis::other});
    steps.push_back({.id = "k-norm",
                     .title = "‖k‖",
                     .formula = said("how much every query likes the key"),
                     .value = k_norm,
                     .range = MechanismStep::Range::positive,
                     .rows = MechanismAxis::key,
                     .columns = MechanismAxis::other});
    steps.push_back({.id = "cosines",
                     .title = "cos θ",
                     .formula = "q·k ÷ (‖q‖ ‖k‖)",
                     .value = cosines,
                     .explain = [q = in.q, k = in.k, q_norm, k_norm](Index i, Index j) {
                       return fmt::format("({}) ÷ ({} · {})", explain_product_t(q, k)(i, j), text(q_norm.at(i, 0)),
                                          text(k_norm.at(j, 0)));
                     }});
    steps.push_back({.id = "scores",
                     .title = said("Scores"),
                     .formula = plain   ? said("scale · ‖q‖ ‖k‖ cos θ")
                                : means ? said("scale · ‖q‖ ‖k‖ cos θ, with what is switched off at its mean")
                                        : said("‖q‖ ‖k‖ cos θ ÷ τ, with what is switched off at 1"),
                     .value = scores,
                     .explain = [a, b, cosines, factor, scores](Index i, Index j) {
                       return fmt::format("{} · {} · {} · {} = {}", text(factor), text(a.at(i, 0)), text(b.at(j, 0)),
                                          text(cosines.at(i, j)), text(scores.at(i, j)));
                     }});
  }
  MechanismResult result = softmax_of(in, std::move(scores), std::move(steps), detail);
  const auto spread = [](const Tensor& norm) {
    const auto [low, high] = std::ranges::minmax(norm.values());
    return fmt::format("{} … {}", text(low), text(high));
  };
  result.facts = {{"‖q‖", spread(q_norm), said("smallest and largest norm of a query")},
                  {"‖k‖", spread(k_norm), said("smallest and largest norm of a key")}};
  return result;
}

}  // namespace

Mechanism make_cosine() {
  Mechanism m;
  m.id = "cosine";
  m.title = to_say("Norms and angle, ‖q‖ ‖k‖ cos θ");
  m.name = to_say("Cosine, ‖q‖ ‖k‖ cos θ");
  m.group = to_say("Exact softmax");
  m.source = "Su 2023; Liu et al. 2022";
  m.formula = "q·k = ‖q‖ ‖k‖ cos θ";
  m.meaning = to_say(
      "The query's norm sets how sharp its row is, the key's norm how much every query likes it, the angle who suits "
      "whom. Switch one off and see what it carried.");
  m.keywords =
      "cosine attention split angle norm key normalization QK query-key normalisation key normalisation Su Jianlin L2 "
      "Swin V2 similarity dot "
      "product is times times";
  m.ours = to_say(
      "τ is learnt for each head in Swin V2, from 1/τ = 10; here it is a slider. The mean of the norms in place of 1 "
      "is ours too, and looks ahead.");
  m.parameters = {
      toggle_parameter("query-norm", to_say("Query norm ‖q‖"), to_say("Off: every query gets norm 1, or the mean."),
                       false),
      toggle_parameter("key-norm", to_say("Key norm ‖k‖"), to_say("Off: every key gets norm 1, or the mean."), false),
      only_where(choice_parameter(
                     "off-norm", to_say("A norm that is off"),
                     to_say("Is 1, and scores are divided by τ; or is the mean over the text, which looks ahead."),
                     {to_say("one"), to_say("mean")}),
                 [](const MechanismValues& v, const MechanismShape&) { return !both_norms(v); }),
      only_where(
          number_parameter("temperature", to_say("Temperature τ"), to_say("Of cosines: scores are cos θ ÷ τ."), 0.01,
                           10, 0.1, true),
          [](const MechanismValues& v, const MechanismShape&) { return !both_norms(v) && v.whole("off-norm") == 0; }),
      number_parameter("sharpness", to_say("Sharpness"), to_say("Scores are multiplied by it."), 0.05, 20, 1, true)};
  m.run = run_cosine;
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues&) {
    MechanismCost cost = plain_cost(s);
    cost.multiply_adds += 2 * static_cast<double>(s.n) * static_cast<double>(s.d);
    return cost;
  };
  m.chips = [](const MechanismShape& s, const MechanismValues&) { return softmax_chips(s, "‖q‖ ‖k‖ cos θ"); };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) -> std::string {
    if (v.on("query-norm") && v.on("key-norm"))
      return v.number("sharpness") == 1 ? said("Both norms are kept: the product is the plain score.") : "";
    if (!v.on("query-norm") && !v.on("key-norm"))
      return said("Only the angle is left: what still differs between the maps was carried by norms.");
    return v.on("query-norm")
               ? said(
                     "Without key norms no column is preferred by all rows; a sink that lived in its key's norm fades.")
               : said("Without query norms all rows are equally sharp; the order inside a row stays.");
  };
  return m;
}

}  // namespace headscope::mechanism
