// The selective scan of Mamba over one head (core/attention/selective_scan.h has the formulas and sources), B from the
// keys, C from the queries, x from the values: the hidden attention matrix is read as effective weights beside
// softmax's. In a Mamba model Δ is a learnt linear map of the token; here it is softplus(bias + sensitivity · kₜ·w)
// with a drawn direction w, so that what makes it selective is one slider: at 0 every token counts alike. A is diagonal
// with −rate, −2 rate, … (S4D-real; Gu, Gupta, Goel & Ré 2022). Shapes: state (d, d_v). Cost: 3 n d d_v multiply-adds.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/selective_scan.h"
#include "core/tensor/gap.h"

namespace headscope::mechanism {

namespace {

SelectiveScan scan_of(const MechanismInput& in, const MechanismValues& values) {
  SelectiveScan scan{in.v, in.k, times(in.q, in.scale), {}, {}};
  const Tensor direction = gaussian(in.d(), 1, values.seed());
  for (Index t = 0; t < in.n(); ++t) {
    double along = 0;
    for (Index c = 0; c < in.d(); ++c)
      along += static_cast<double>(in.k.at(t, c)) * static_cast<double>(direction.at(c, 0));
    along /= std::sqrt(static_cast<double>(in.d()));
    scan.delta.push_back(softplus(values.number("bias") + values.number("sensitivity") * along));
  }
  for (Index i = 0; i < in.d(); ++i) scan.a.push_back(-values.number("rate") * static_cast<double>(i + 1));
  return scan;
}

MechanismResult run(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "mamba");
  const SelectiveScan scan = scan_of(in, values);
  MechanismResult result;
  result.kind = MapKind::effective;
  result.weights = hidden_attention(scan, in.stop);
  result.output = product(result.weights, in.v);
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  Tensor delta = Tensor::uninitialized({in.n(), 1}), keep = Tensor::uninitialized({in.n(), in.d()});
  MechanismCurve steps{"Step length Δ of each token", "token", "Δ", {{"Δ", {}, scan.delta}}, false, {}};
  for (Index t = 0; t < in.n(); ++t) {
    const double length = scan.delta[static_cast<std::size_t>(t)];
    delta.ref(t, 0) = static_cast<float>(length);
    for (Index i = 0; i < in.d(); ++i)
      keep.ref(t, i) = static_cast<float>(std::exp(length * scan.a[static_cast<std::size_t>(i)]));
    steps.lines[0].x.push_back(static_cast<double>(t));
  }
  result.steps.push_back({.id = "delta",
                          .title = "Δ",
                          .formula = "softplus(bias + sensitivity · kₜ·w ÷ √d)",
                          .value = delta,
                          .range = MechanismStep::Range::positive,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "keep",
                          .title = "exp(Δ A)",
                          .formula = "what each token leaves of the state",
                          .value = keep,
                          .range = MechanismStep::Range::probability,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "weights",
                          .title = "Hidden attention",
                          .formula = "Cₜ · exp(A Σ Δ) ⊙ Δₛ Bₛ",
                          .value = result.weights,
                          .masked = hidden_cells(*in.rule, in.n(), in.m())});
  result.steps.push_back(output_step(result.weights, in.v, result.output, "α V"));
  result.curves = {std::move(steps)};
  int rounds = 0;
  const Tensor parallel = scan_parallel(scan, &rounds), recurrent = scan_recurrent(scan);
  result.facts = {{"Parallel scan", fmt::format("{} rounds", rounds), "⌈log₂ n⌉ rounds of joined steps"},
                  {"Parallel against recurrent", fmt::format("{:.1e}", greatest_gap(parallel, recurrent)),
                   "largest |difference| of an output"}};
  return result;
}

Tensor output(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "mamba");
  return scan_recurrent(scan_of(in, values));
}

}  // namespace

Mechanism make_mamba() {
  Mechanism m;
  m.id = "mamba";
  m.title = "Mamba: a selective state space, and its hidden attention";
  m.name = "Mamba (selective scan)";
  m.group = "Recurrent";
  m.source = "Gu & Dao 2023; Ali et al. 2024";
  m.formula = "hₜ = exp(Δₜ A) hₜ₋₁ + Δₜ Bₜ xₜ,   yₜ = Cₜ · hₜ";
  m.meaning =
      "A state space whose step length Δ, input B and output C follow from the token: a long step overwrites the past, "
      "a "
      "short one passes the token over. Written out it is an attention matrix that was never computed.";
  m.keywords = "selective scan SSM S6 hidden attention parallel scan F3";
  m.parameters = {
      number_parameter("sensitivity", "Selectivity", "How much Δ depends on the token; 0 = not at all.", 0, 8, 2),
      number_parameter("bias", "Step bias", "Before softplus: small Δ remembers long.", -6, 3, -2),
      number_parameter("rate", "Decay rate", "A = −rate, −2 rate, …", 0.001, 2, 0.05, true),
      seed_parameter("of the direction w")};
  m.run = run;
  m.output = output;
  m.recurrent = [](const MechanismInput& in, const MechanismValues& values) {
    need_causal(in, "mamba");
    Recurrence result{"hₜ = exp(Δₜ A) ⊙ hₜ₋₁ + Δₜ Bₜ xₜᵀ", "yₜ = hₜᵀ Cₜ", {}, false, {}};
    result.output = scan_recurrent(scan_of(in, values), &result.states);
    return result;
  };
  m.cost = [](const MechanismShape& s, const MechanismValues&) {
    const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d), d_v = static_cast<double>(s.d_v);
    return MechanismCost{3 * n * d * d_v, d * d_v * 4, 0, 4 * 2 * n * (d + d_v)};
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) -> std::string {
    return v.number("sensitivity") == 0
               ? "At selectivity 0 all steps have one length: every token fades at the same pace."
               : "Columns of tokens with a long step stand out, and dim what lies to their left.";
  };
  m.needs_causal = true;
  return m;
}

}  // namespace headscope::mechanism
