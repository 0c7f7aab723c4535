// Attention over attention (AWRSR; Yuli Liu, Min Liu & Xiaojing Liu, Pay Attention to Attention for Sequential
// Recommendation, RecSys 2024): the softmax weights A are themselves treated as n vectors, and attention is computed
// between them.
//   simple           B = softmax((A W_q)(A W_k)ᵀ ÷ √m),            O = B V
//   value-weighted   B = softmax((A W_q)(A W_k)ᵀ ÷ √m) (A W_v),    rows divided by their sums
//   additive         A + B (simple), divided by 2: both levels in balance
//   stochastic       rows as Gaussians with means A W_μ and deviations elu(A W_σ) + 1; B = softmax(−W₂² ÷ √m), W₂² the
//                    squared Wasserstein distance ‖μ_i − μ_j‖² + ‖σ_i − σ_j‖² (as in STOSA; Fan et al. 2022)
// Ours: the W are learnt in the paper, for a fixed length m; here each is the identity plus `spread` times a drawn
// matrix. The scale 1/√m is softmax attention's own for vectors of m numbers; `sharpness` multiplies it, 1 leaves it as
// it is (rows of weights are short vectors: only well above 1 does B differ much from the mean). The mask of the head
// hides cells of B too. value-weighted divides rows by their sums and additive by 2, so that rows sum to 1.
// Shapes: A, B (n, m), W (m, m); n = m. Cost: softmax attention's and 2 n m² + n² m more.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/base/error.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

enum RefinedForm { simple, value_weighted, additive, stochastic };

/// A W, W = I + spread · N(0, 1/m).
Tensor refined_projected(const Tensor& a, double spread, std::uint64_t seed) {
  if (spread == 0) return a;
  Tensor w =
      times(gaussian(a.dim(1), a.dim(1), seed), static_cast<float>(spread / std::sqrt(static_cast<double>(a.dim(1)))));
  for (Index i = 0; i < w.dim(0); ++i) w.ref(i, i) += 1;
  return product(a, w);
}

/// −W₂² of all pairs of rows.
Tensor distances(const Tensor& mean, const Tensor& deviation) {
  Tensor out = Tensor::zeros({mean.dim(0), mean.dim(0)});
  for (Index i = 0; i < out.dim(0); ++i)
    for (Index j = 0; j < out.dim(1); ++j) {
      double sum = 0;
      for (Index c = 0; c < mean.dim(1); ++c)
        sum += std::pow(static_cast<double>(mean.at(i, c)) - static_cast<double>(mean.at(j, c)), 2) +
               std::pow(static_cast<double>(deviation.at(i, c)) - static_cast<double>(deviation.at(j, c)), 2);
      out.ref(i, j) = static_cast<float>(-sum);
    }
  return out;
}

MechanismResult run_refined(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  if (in.n() != in.m())
    throw Error("mechanism refined", "as many queries as keys: rows of the weights are compared with one another",
                fmt::format("{} and {}", in.n(), in.m()));
  const Tensor a = softmax_reference(in).weights;
  const double spread = values.number("spread");
  const auto form = static_cast<RefinedForm>(values.whole("form"));
  const auto unit = static_cast<float>(values.number("sharpness") / std::sqrt(static_cast<double>(in.m())));
  const Tensor q = refined_projected(a, spread, values.seed()), k = refined_projected(a, spread, values.seed() + 1);
  Tensor scores;
  if (form == stochastic) {
    const Tensor deviation = each(k, one_plus_elu);
    scores = times(distances(q, deviation), unit);
  } else {
    scores = times(product_t(q, k), unit);
  }
  check(in);
  // Edits of scores act in A; rows are compared under the mask alone.
  Tensor masked = scores.copy();
  if (const auto hidden = hidden_cells(*in.rule, in.n(), in.m()); !hidden.empty())
    for (std::size_t cell = 0; cell < hidden.size(); ++cell)
      if (hidden[cell]) masked.mutable_values()[cell] = -std::numeric_limits<float>::infinity();
  const Tensor b = softmax_rows(std::move(masked));
  MechanismResult result;
  result.weights = b;
  if (form == additive) result.weights = times(minus(a, times(b, -1)), 0.5f);
  if (form == value_weighted) {
    result.weights = product(b, refined_projected(a, spread, values.seed() + 2));
    hide(hidden_cells(*in.rule, in.n(), in.m()), result.weights);
    for (Index i = 0; i < in.n(); ++i) {
      double sum = 0;
      for (Index j = 0; j < in.m(); ++j) sum += static_cast<double>(result.weights.at(i, j));
      for (Index j = 0; j < in.m(); ++j)
        result.weights.ref(i, j) =
            sum == 0 ? 0 : static_cast<float>(static_cast<double>(result.weights.at(i, j)) / sum);
    }
    if (spread > 0) result.kind = MapKind::effective;
  }
  result.output = product(result.weights, in.v);
  if (detail != Detail::steps) return result;
  const auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  result.steps.push_back({.id = "a",
                          .title = "A",
                          .formula = say("softmax({}): each row is now a vector", scores_text(in)),
                          .value = a,
                          .range = MechanismStep::Range::probability,
                          .masked = hidden});
  result.steps.push_back({.id = "scores",
                          .title = form == stochastic ? "−W₂² ÷ √m" : "(A W_q)(A W_k)ᵀ ÷ √m",
                          .formula = said("how alike two queries look around"),
                          .value = scores,
                          .masked = hidden,
                          .explain = form == stochastic ? std::function<std::string(Index, Index)>{}
                                                        : explain_product_t(q, k, static_cast<double>(unit))});
  result.steps.push_back({.id = "b",
                          .title = "B",
                          .formula = said("softmax of the row, same mask"),
                          .value = b,
                          .range = MechanismStep::Range::probability,
                          .masked = hidden});
  result.steps.push_back({.id = "weights",
                          .title = said("Refined weights"),
                          .formula = form == additive         ? "(A + B) ÷ 2"
                                     : form == value_weighted ? said("B (A W_v), each row ÷ its sum")
                                                              : "B",
                          .value = result.weights,
                          .range = result.kind == MapKind::effective ? MechanismStep::Range::signed_values
                                                                     : MechanismStep::Range::probability,
                          .masked = hidden});
  result.steps.push_back(output_step(result.weights, in.v, result.output, said("refined weights · V")));
  return result;
}

}  // namespace

Mechanism make_refined() {
  Mechanism m;
  m.id = "refined";
  m.title = to_say("Refined weights: attention over attention (AWRSR)");
  m.name = to_say("Refined weights (AWRSR)");
  m.group = to_say("Attention over attention");
  m.source = "Yuli Liu, Min Liu & Xiaojing Liu 2024";
  m.formula = "B = softmax((A W_q)(A W_k)ᵀ ÷ √m)";
  m.meaning = to_say(
      "Two queries that look at the same keys are related. Attention is computed between rows of the weights "
      "themselves, and refines them.");
  m.keywords =
      "AWRSR refinement simple value-weighted additive stochastic STOSA sequential recommendation attention over "
      "attention re-attention refined weights";
  m.ours = to_say(
      "The W are learnt in the paper for one length; here they are the identity, or drawn. Sharpness above 1, the mask "
      "on B, and rows that sum to 1 are ours.");
  m.parameters = {
      choice_parameter("form", to_say("Refinement"), to_say("Which of the paper's four."),
                       {to_say("simple"), to_say("value-weighted"), to_say("additive"), to_say("stochastic")}),
      number_parameter("sharpness", to_say("Sharpness"),
                       to_say("Scores between rows are multiplied by it; 1: as scaled."), 0.1, 100, 1, true),
      number_parameter("spread", to_say("Spread of W"),
                       to_say("0: every W is the identity; else plus so much of a drawn matrix."), 0, 2, 0),
      only_where(seed_parameter(to_say("of the W")),
                 [](const MechanismValues& v, const MechanismShape&) { return v.number("spread") > 0; })};
  m.run = run_refined;
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    MechanismCost cost = plain_cost(s);
    const auto n = static_cast<double>(s.n);
    cost.multiply_adds +=
        n * n * n * (v.number("spread") > 0 ? 3 : 1) + (v.whole("form") == value_weighted ? n * n * n : 0);
    return cost;
  };
  m.chips = [](const MechanismShape& s, const MechanismValues&) {
    using Role = ShapeChip::Role;
    return std::vector<ShapeChip>{chip(Role::query, "A", s.n, s.n), chip(Role::key, "· Aᵀ", s.n, s.n),
                                  chip(Role::plain, "softmax", s.n, s.n), chip(Role::value, "· V", s.n, s.d_v),
                                  chip(Role::output, "O", s.n, s.d_v)};
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) -> std::string {
    return v.number("spread") == 0
               ? said("With every W the identity, weight goes to keys whose own rows look around as the query's does.")
               : said("The W are drawn, not learnt: what changes with the seed is not a finding.");
  };
  return m;
}

}  // namespace headscope::mechanism
