// Additive attention (Bahdanau, Cho & Bengio, Neural Machine Translation by Jointly Learning to Align and Translate,
// 2015): s_ij = wᵀ tanh(W q_i + U k_j). W, U (h, d) and w (h) are learnt in the paper; a loaded model has none, so they
// are the identity (h = d, w = 1) or drawn with a seed, entries N(0, 1/d) and w N(0, 1/h).
// Shapes: q (n, d), k (m, d); tanh is taken of n m h numbers. Cost: (n + m) d h + n m (h + d_v) multiply-adds, and n m
// h tanh, which no matrix product can do.

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

MechanismResult run_additive(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const bool drawn = values.whole("weights") == 1;
  const Index h = drawn ? values.whole("hidden") : in.d();
  Tensor wq = in.q, uk = in.k, w = Tensor::full({h}, 1.0f);  // (n, h), (m, h), (h)
  if (drawn) {
    const float unit = static_cast<float>(1 / std::sqrt(static_cast<double>(in.d())));
    wq = times(product(in.q, gaussian(in.d(), h, values.seed())), unit);
    uk = times(product(in.k, gaussian(in.d(), h, values.seed() + 1)), unit);
    w = times(gaussian(1, h, values.seed() + 2), static_cast<float>(1 / std::sqrt(static_cast<double>(h))))
            .reshape({h});
  }
  // No √d here, but a temperature divides every score.
  const float sharpness = static_cast<float>(values.number("sharpness")) / in.temperature;
  Tensor scores = Tensor::zeros({in.n(), in.m()});
  for (Index i = 0; i < in.n(); ++i) {
    check(in);
    for (Index j = 0; j < in.m(); ++j) {
      float sum = 0;
      for (Index c = 0; c < h; ++c) sum += w.at(c) * std::tanh(wq.at(i, c) + uk.at(j, c));
      scores.ref(i, j) = sharpness * sum;
    }
  }
  std::vector<MechanismStep> steps;
  if (detail == Detail::steps) {
    add_inputs(steps, in);
    steps.push_back({.id = "wq",
                     .title = "W q",
                     .formula = drawn ? said("W drawn with the seed") : said("W = identity"),
                     .value = wq,
                     .columns = MechanismAxis::other});
    steps.push_back({.id = "uk",
                     .title = "U k",
                     .formula = drawn ? said("U drawn with the seed") : said("U = identity"),
                     .value = uk,
                     .rows = MechanismAxis::key,
                     .columns = MechanismAxis::other});
    steps.push_back({.id = "scores",
                     .title = said("Scores"),
                     .formula = "wᵀ tanh(W q + U k)",
                     .value = scores,
                     .explain = [wq, uk, w, sharpness](Index i, Index j) {
                       return sum_text(
                           w.dim(0),
                           [&](Index c) {
                             return std::pair{static_cast<double>(w.at(c)),
                                              std::tanh(static_cast<double>(wq.at(i, c) + uk.at(j, c)))};
                           },
                           static_cast<double>(sharpness));
                     }});
  }
  return softmax_of(in, std::move(scores), std::move(steps), detail);
}

bool drawn_weights(const MechanismValues& v, const MechanismShape&) {
  return v.whole("weights") == 1;
}

}  // namespace

Mechanism make_additive() {
  Mechanism m;
  m.id = "additive";
  m.title = to_say("Additive attention");
  m.name = to_say("Additive (Bahdanau)");
  m.group = to_say("Exact softmax");
  m.source = "Bahdanau et al. 2015";
  m.formula = "sᵢⱼ = wᵀ tanh(W qᵢ + U kⱼ)";
  m.meaning = to_say(
      "A small network scores each pair of query and key. tanh bounds every term, so scores cannot grow with d, and "
      "queries and keys need not be equally long.");
  m.keywords = "concat tanh multiplicative Bahdanau Luong alignment score general attention";
  m.parameters = {
      choice_parameter("weights", "W, U, w", to_say("The identity, or drawn: a loaded model has none of its own."),
                       {to_say("identity"), to_say("drawn")}),
      only_where(whole_parameter("hidden", to_say("Hidden units"), to_say("Of the scoring network, where it is drawn."),
                                 1, 256, 32, true),
                 drawn_weights),
      number_parameter("sharpness", to_say("Sharpness"), to_say("Scores are multiplied by it."), 0.05, 20, 1, true),
      only_where(seed_parameter(to_say("of W, U and w")), drawn_weights)};
  m.run = run_additive;
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    MechanismCost cost = plain_cost(s);
    const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d);
    const double h = v.whole("weights") == 1 ? v.number("hidden") : d;
    cost.multiply_adds = (v.whole("weights") == 1 ? 2 * n * d * h : 0) + n * n * (h + static_cast<double>(s.d_v));
    return cost;
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    const Index h = v.whole("weights") == 1 ? v.whole("hidden") : s.d;
    std::vector<ShapeChip> chips = softmax_chips(s, "wᵀ tanh(W q + U k)");
    chips.push_back({ShapeChip::Role::remark, say("tanh of {}×{}×{} numbers", s.rows(), s.n, h), ""});
    return chips;
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) -> std::string {
    return v.whole("weights") == 1
               ? said("W, U and w are drawn, not learnt: this shows the form of the score, not a trained model.")
               : said(
                     "With W = U = identity and w = 1 the score asks whether q and k add up, not whether "
                     "they agree, so it prefers keys that are large wherever q is.");
  };
  return m;
}

}  // namespace headscope::mechanism
