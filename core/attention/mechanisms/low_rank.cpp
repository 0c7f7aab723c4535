// The low-rank nature of attention (Wang et al., Linformer: Self-Attention with Linear Complexity, 2020, Theorem 1):
// the singular values of the softmax weights P, and P cut to its r largest (Eckart & Young 1936). Not a method to run
// (the cut needs P first) but the measure of what low-rank methods could reach.
// Shapes: P (n, m) = U diag(σ) Vᵀ. Cost: softmax attention's, and O(n² min(n, m)) for the decomposition.

#include <fmt/format.h>

#include <algorithm>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/attention/mechanisms/spectrum.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

MechanismResult run_low_rank(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const MechanismResult full = softmax_reference(in);
  const auto rank = static_cast<int>(std::min(values.whole("rank"), std::min(in.n(), in.m())));
  MechanismResult result;
  result.kind = MapKind::effective;
  check(in);  // the decomposition takes n³
  const Cut cut = cut_to_rank(full.weights, rank);
  result.weights = cut.matrix;
  result.output = product(result.weights, in.v);
  if (detail == Detail::output) return result;
  const std::vector<double>& sigma = cut.singular;
  double all = 0, kept = 0;
  for (std::size_t i = 0; i < sigma.size(); ++i) {
    all += sigma[i] * sigma[i];
    if (static_cast<int>(i) < rank) kept += sigma[i] * sigma[i];
  }
  result.facts = {{said("Rank for 90 % energy"), say("{} of {}", energy_rank(sigma, 0.9), sigma.size()),
                   said("fewest singular values of P whose squares sum to 90 % of all squares")},
                  {said("Energy kept"), fmt::format("{:.1f} %", all > 0 ? 100 * kept / all : 0.0),
                   said("Σ of the kept σ² ÷ Σ of all σ²")}};
  if (detail != Detail::steps) return result;
  result.steps.push_back({.id = "softmax",
                          .title = said("Softmax weights P"),
                          .formula = "softmax(" + scores_text(in) + ")",
                          .value = full.weights,
                          .range = MechanismStep::Range::probability,
                          .masked = hidden_cells(*in.rule, in.n(), in.m())});
  Tensor spectrum = Tensor::zeros({static_cast<Index>(sigma.size()), 1});
  for (std::size_t i = 0; i < sigma.size(); ++i) spectrum.ref(static_cast<Index>(i), 0) = static_cast<float>(sigma[i]);
  result.steps.push_back({.id = "sigma",
                          .title = "σ",
                          .formula = said("singular values of P"),
                          .value = spectrum,
                          .range = MechanismStep::Range::positive,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "cut",
                          .title = say("P of rank {}", rank),
                          .formula = said("Σ of the r largest σ u vᵀ"),
                          .value = result.weights,
                          .range = MechanismStep::Range::signed_values});
  result.steps.push_back(output_step(result.weights, in.v, result.output, "P_r V"));
  MechanismCurve curve{
      said("Energy held by the r largest singular values"), "r", said("% of Σ σ²"), {{"", {}, {}}}, false, {}};
  double sum = 0;
  for (std::size_t i = 0; i < sigma.size(); ++i) {
    sum += sigma[i] * sigma[i];
    curve.lines[0].x.push_back(static_cast<double>(i + 1));
    curve.lines[0].y.push_back(all > 0 ? 100 * sum / all : 0);
  }
  if (rank > 0) curve.marker = {static_cast<double>(rank), nth(curve.lines[0].y, rank - 1)};
  result.curves.push_back(std::move(curve));
  return result;
}

}  // namespace

Mechanism make_low_rank() {
  Mechanism m;
  m.id = "low-rank";
  m.title = to_say("Low rank of the attention matrix");
  m.name = to_say("Low-rank spectrum");
  m.group = to_say("Low rank & kernel");
  m.source = "Wang et al. 2020";
  m.formula = "P ≈ Σ σᵢ uᵢ vᵢᵀ, i = 1 … r";
  m.meaning = to_say(
      "A few singular values hold most of an attention matrix. Cut to rank r, how much of the map and of the output "
      "is left?");
  m.keywords = "singular values SVD spectrum truncated energy rank collapse effective rank of attention";
  m.parameters = {whole_parameter("rank", to_say("Rank r"), to_say("Singular values that are kept."), 1, 512, 4, true)};
  m.run = run_low_rank;
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    MechanismCost cost = plain_cost(s);
    const double r = std::min(v.number("rank"), static_cast<double>(s.n));
    cost.multiply_adds = static_cast<double>(s.n) * r * static_cast<double>(s.d + s.d_v);  // were U and V known
    return cost;
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    using Role = ShapeChip::Role;
    const Index r = std::min({v.whole("rank"), s.n, s.rows()});
    return std::vector<ShapeChip>{
        chip(Role::plain, "U", s.rows(), r),      chip(Role::plain, "σ", r, r, "·"),
        chip(Role::plain, "Vᵀ", r, s.n, "·"),     chip(Role::value, "V", s.n, s.d_v, "·"),
        chip(Role::output, "O", s.rows(), s.d_v), {Role::remark, said("needs P first: a measure, not a method"), ""}};
  };
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return r.facts.size() < 2
               ? ""
               : say("The cut keeps {} of the squares; 90 % would take rank {}.", r.facts[1].value, r.facts[0].value);
  };
  return m;
}

}  // namespace headscope::mechanism
