// Gated linear attention (Yang et al., Gated Linear Attention Transformers with Hardware-Efficient Training, 2024):
//   S_t = G_t ∘ S_{t−1} + k_t v_tᵀ,   o_t = S_tᵀ q_t.
// The gate forms: none (G = 1: plain linear attention), a fixed scalar γ (RetNet; Sun et al. 2023), a scalar that
// depends on the token, γ_t = σ(b + w·k_t/√d) (mLSTM, Mamba-2), a vector α_t = σ(b + W k_t/√d) over the rows of S
// (GLA). w and W are learnt in the papers; a loaded model has none, so they are drawn with the seed, entries N(0, 1).
// Parallel form: weight(t, s) = Σ_c q_tc k_sc Π_{u = s+1…t} G_uc.
// Shapes: S (d, d_v), gates (n, d). Cost: 2 n d d_v multiply-adds, n d d_v more for a gate; state d d_v floats.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"

namespace headscope::mechanism {

namespace {

enum Gate { none, scalar, data_scalar, data_vector };

struct Parts {
  Tensor q, k;   // (n, d)
  Tensor gates;  // (n, d): what row c of S is multiplied by before token t is written
  bool norm;
};

Parts parts_of(const MechanismInput& in, const MechanismValues& values) {
  const float root = std::sqrt(std::abs(in.scale));
  const bool positive = values.on("positive");
  const auto phi = [positive, root](float x) { return positive ? one_plus_elu(x) : root * x; };
  Parts parts{each(in.q, phi), each(in.k, phi), Tensor::full({in.m(), in.d()}, 1.0f), values.on("norm")};
  const Index form = values.whole("gate");
  if (form == scalar) parts.gates = Tensor::full({in.m(), in.d()}, static_cast<float>(values.number("decay")));
  if (form == data_scalar || form == data_vector) {
    const Index width = form == data_scalar ? 1 : in.d();
    const Tensor w = gaussian(in.d(), width, values.seed());
    const Tensor drive = times(product(in.k, w), static_cast<float>(1 / std::sqrt(static_cast<double>(in.d()))));
    for (Index t = 0; t < in.m(); ++t)
      for (Index c = 0; c < in.d(); ++c)
        parts.gates.ref(t, c) = static_cast<float>(
            1 / (1 + std::exp(-(values.number("bias") + static_cast<double>(drive.at(t, width == 1 ? 0 : c))))));
  }
  return parts;
}

MechanismResult run(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "gated");
  const Parts p = parts_of(in, values);
  MechanismResult result;
  result.kind = MapKind::effective;
  result.weights = Tensor::zeros({in.n(), in.m()});
  std::vector<double> reach(static_cast<std::size_t>(in.d()));
  bool negative = false;
  for (Index t = 0; t < in.n(); ++t) {
    check(in);
    std::ranges::fill(reach, 1.0);
    for (Index s = t; s >= 0; --s) {
      double sum = 0;
      for (Index c = 0; c < in.d(); ++c) {
        sum +=
            reach[static_cast<std::size_t>(c)] * static_cast<double>(p.q.at(t, c)) * static_cast<double>(p.k.at(s, c));
        reach[static_cast<std::size_t>(c)] *= static_cast<double>(p.gates.at(s, c));
      }
      result.weights.ref(t, s) = static_cast<float>(sum);
      negative = negative || sum < 0;
    }
  }
  result.output = product(result.weights, in.v);
  if (p.norm) {
    std::vector<float> factors;
    result.output = rms_rows(result.output, &factors);
    for (Index t = 0; t < in.n(); ++t)
      for (Index s = 0; s <= t; ++s) result.weights.ref(t, s) *= factors[static_cast<std::size_t>(t)];
  }
  double mean = 0;
  for (const float g : p.gates.values()) mean += static_cast<double>(g) / static_cast<double>(p.gates.size());
  result.facts.push_back({"Mean gate", text(mean), "mean of G over tokens and rows of the state; 1 forgets nothing"});
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  result.steps.push_back({.id = "gates",
                          .title = "Gates G",
                          .formula = "what each row of S is multiplied by at token t",
                          .value = p.gates,
                          .range = MechanismStep::Range::probability,
                          .rows = MechanismAxis::key,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "ungated",
                          .title = "φ(Q) φ(K)ᵀ",
                          .formula = "without gates",
                          .value = product_t(p.q, p.k),
                          .masked = hidden_cells(*in.rule, in.n(), in.m()),
                          .explain = explain_product_t(p.q, p.k)});
  result.steps.push_back({.id = "weights",
                          .title = "Effective weights",
                          .formula = "Σ_c q k Π gates between",
                          .value = result.weights,
                          .range = negative ? MechanismStep::Range::signed_values : MechanismStep::Range::positive,
                          .masked = hidden_cells(*in.rule, in.n(), in.m())});
  result.steps.push_back(
      output_step(result.weights, in.v, result.output, p.norm ? "Sᵀ q, each row ÷ its rms" : "Sᵀ q"));
  return result;
}

/// Every token's state goes to `keep`.
template <class Keep>
Tensor recur(const MechanismInput& in, const Parts& p, Keep keep) {
  Tensor out = Tensor::zeros({in.n(), in.d_v()}), state = Tensor::zeros({in.d(), in.d_v()});
  for (Index t = 0; t < in.n(); ++t) {
    if (t % 256 == 0) check(in);
    for (Index c = 0; c < in.d(); ++c) {
      float* const row = &state.ref(c, 0);
      const float gate = p.gates.at(t, c), k = p.k.at(t, c), q = p.q.at(t, c);
      for (Index e = 0; e < in.d_v(); ++e) {
        row[e] = gate * row[e] + k * in.v.at(t, e);
        out.ref(t, e) += q * row[e];
      }
    }
    keep(state);
  }
  return p.norm ? rms_rows(out) : out;
}

Tensor output(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "gated");
  return recur(in, parts_of(in, values), [](const Tensor&) {});
}

Recurrence recurrent(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "gated");
  const Parts p = parts_of(in, values);
  Recurrence result;
  result.update = "Sₜ = Gₜ ∘ Sₜ₋₁ + kₜ vₜᵀ";
  result.readout = p.norm ? "oₜ = Sₜᵀ qₜ, ÷ its rms" : "oₜ = Sₜᵀ qₜ";
  result.output = recur(in, p, [&](const Tensor& state) { result.states.push_back(state.copy()); });
  return result;
}

}  // namespace

Mechanism make_gated() {
  Mechanism m;
  m.id = "gated";
  m.title = "Gated linear attention";
  m.name = "Gated linear (GLA)";
  m.group = "Recurrent";
  m.source = "Yang et al. 2024; Sun et al. 2023";
  m.formula = "Sₜ = Gₜ ∘ Sₜ₋₁ + kₜ vₜᵀ,   oₜ = Sₜᵀ qₜ";
  m.meaning =
      "Linear attention writes every token into one matrix and never erases. A gate lets the matrix forget: evenly, or "
      "as the token says, for all of it or row by row.";
  m.keywords = "GLA RetNet Mamba-2 mLSTM decay gate forms E12";
  m.parameters = {choice_parameter("gate", "Gate", "What the state is multiplied by at each token.",
                                   {"none", "scalar", "data-scalar", "data-vector"}, 3),
                  number_parameter("decay", "Decay γ", "Of the scalar gate.", 0.5, 1, 0.9),
                  number_parameter("bias", "Gate bias b", "Of the gates that depend on the token: σ(b + …).", -2, 8, 2),
                  toggle_parameter("positive", "φ = 1 + elu", "Off: queries and keys as they are.", false),
                  toggle_parameter("norm", "Normalise after", "Each output row ÷ its root mean square.", false),
                  seed_parameter("of the gate's weights")};
  m.run = run;
  m.output = output;
  m.recurrent = recurrent;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d), d_v = static_cast<double>(s.d_v);
    const Index form = v.whole("gate");
    const double gate = form == none ? 0
                                     : n * d * d_v + (form == data_vector   ? n * d * d
                                                      : form == data_scalar ? n * d
                                                                            : 0);
    return MechanismCost{2 * n * d * d_v + gate, d * d_v * 4, 0, 4 * 2 * n * (d + d_v)};
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    using Role = ShapeChip::Role;
    const Index form = v.whole("gate");
    std::vector<ShapeChip> chips{chip(Role::key, "kₜ vₜᵀ", s.d, s.d_v)};
    if (form != none) chips.push_back(chip(Role::plain, "Gₜ ∘ S", form == data_vector ? s.d : 1, 1));
    chips.push_back(chip(Role::value, "S", s.d, s.d_v));
    chips.push_back(chip(Role::query, "· qₜ", s.d, 1, ""));
    chips.push_back(chip(Role::output, "O", s.n, s.d_v));
    chips.push_back({Role::remark, fmt::format("never builds {}×{}", s.n, s.n), ""});
    return chips;
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult& r) -> std::string {
    if (v.whole("gate") == none) return "Without a gate this is plain linear attention: nothing is ever forgotten.";
    const std::string mean = r.facts.empty() ? "" : "The mean gate is " + r.facts[0].value + ". ";
    return mean + (v.whole("gate") == scalar
                       ? "Every step fades all alike, so weights fall with distance."
                       : "The gate's weights are drawn, not learnt: the form is shown, not a trained model.");
  };
  m.needs_causal = true;
  return m;
}

}  // namespace headscope::mechanism
