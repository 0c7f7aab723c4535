// Gated linear attention (Yang et al., Gated Linear Attention Transformers with Hardware-Efficient Training, 2024):
//   S_t = G_t ∘ S_{t−1} + k_t v_tᵀ,   o_t = S_tᵀ q_t.
// The gate forms: none (G = 1: plain linear attention), a fixed scalar γ (RetNet; Sun et al. 2023), a scalar that
// depends on the token, γ_t = σ(b + w·k_t/√d)^(1/τ) (mLSTM, Mamba-2), a vector α_t = σ(b + W k_t/√d)^(1/τ) over the
// rows of S (GLA, § 4.4: τ = 16 keeps the gates near 1, W = W¹ W² of rank 16). Behind the state, as there: LayerNorm of
// each output row, and the output gate swish(x W_r). Ours: the paper's gates are learnt maps of the layer's input x; a
// head has none, so W¹, W² and W_r are drawn with the seed (entries N(0, 1), W² N(0, 1/rank)), the key standing for the
// token in the one, the query in the other, b a slider that begins at 0; LayerNorm has no gains; queries and keys take
// √scale each, which it takes off again. Parallel form: weight(t, s) = Σ_c q_tc k_sc Π_{u = s+1…t} G_uc. Shapes: S (d,
// d_v), gates (n, d). Cost: 2 n d d_v multiply-adds, n d d_v more for a gate; state d d_v floats.

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/after_state.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

enum Gate { none, scalar, data_scalar, data_vector };

bool from_token(const MechanismValues& v, const MechanismShape&) {
  return v.whole("gate") == data_scalar || v.whole("gate") == data_vector;
}

struct GatedParts {
  Tensor q, k;   // (n, d)
  Tensor gates;  // (n, d): what row c of S is multiplied by before token t is written
  Tensor out;    // (n, d_v): the output gate; undefined where there is none
  bool norm, centre;

  /// What becomes of Sᵀ q; `factors`: what the rows are multiplied by on the way.
  Tensor finish(const Tensor& read, std::vector<float>* factors = nullptr) const {
    return gated(norm ? rms_rows(centre ? centred(read) : read, factors) : read, out);
  }
  /// Whether the output is the effective weights times v.
  bool exact() const { return !out.defined() && !(norm && centre); }
  std::string words() const {
    return std::string(norm ? centre ? ", LayerNorm" : said(", ÷ its rms") : "") +
           (out.defined() ? said(", ⊙ gate") : "");
  }
};

GatedParts gated_parts(const MechanismInput& in, const MechanismValues& values) {
  const float root = std::sqrt(std::abs(in.scale));
  const bool positive = values.on("positive");
  const auto phi = [positive, root](float x) { return positive ? one_plus_elu(x) : root * x; };
  GatedParts parts{each(in.q, phi),
                   each(in.k, phi),
                   Tensor::full({in.m(), in.d()}, 1.0f),
                   output_gate(in, values, GateCurve::swish),
                   values.on("norm"),
                   values.on("centre")};
  const Index form = values.whole("gate");
  if (form == scalar) parts.gates = Tensor::full({in.m(), in.d()}, static_cast<float>(values.number("decay")));
  if (form == data_scalar || form == data_vector) {
    const Index width = form == data_scalar ? 1 : in.d();
    Tensor w = gaussian(in.d(), form == data_vector ? std::min(values.whole("rank"), width) : 1, values.seed());
    if (form == data_vector) {
      const Index rank = w.dim(1);
      w = times(product(w, gaussian(rank, width, values.seed() + 1)),
                static_cast<float>(1 / std::sqrt(static_cast<double>(rank))));
    }
    const double power = 1 / values.number("temperature");
    const Tensor drive = times(product(in.k, w), static_cast<float>(1 / std::sqrt(static_cast<double>(in.d()))));
    for (Index t = 0; t < in.m(); ++t)
      for (Index c = 0; c < in.d(); ++c)
        parts.gates.ref(t, c) = static_cast<float>(std::pow(
            1 / (1 + std::exp(-(values.number("bias") + static_cast<double>(drive.at(t, width == 1 ? 0 : c))))),
            power));
  }
  return parts;
}

MechanismResult run_gated(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "gated");
  const GatedParts p = gated_parts(in, values);
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
        sum += nth(reach, c) * static_cast<double>(p.q.at(t, c)) * static_cast<double>(p.k.at(s, c));
        nth(reach, c) *= static_cast<double>(p.gates.at(s, c));
      }
      result.weights.ref(t, s) = static_cast<float>(sum);
      negative = negative || sum < 0;
    }
  }
  std::vector<float> factors;
  result.output = p.finish(product(result.weights, in.v), &factors);
  result.output_is_weights_times_v = p.exact();
  if (p.norm) result.weights = scaled_rows(result.weights, factors);
  double mean = 0;
  for (const float g : p.gates.values()) mean += static_cast<double>(g) / static_cast<double>(p.gates.size());
  result.facts.push_back(
      {said("Mean gate"), text(mean), said("mean of G over tokens and rows of the state; 1 forgets nothing")});
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  result.steps.push_back({.id = "gates",
                          .title = said("Gates G"),
                          .formula = said("what each row of S is multiplied by at token t"),
                          .value = p.gates,
                          .range = MechanismStep::Range::probability,
                          .rows = MechanismAxis::key,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "ungated",
                          .title = "φ(Q) φ(K)ᵀ",
                          .formula = said("without gates"),
                          .value = product_t(p.q, p.k),
                          .masked = hidden_cells(*in.rule, in.n(), in.m()),
                          .explain = explain_product_t(p.q, p.k)});
  result.steps.push_back({.id = "weights",
                          .title = said("Effective weights"),
                          .formula = said("Σ_c q k Π gates between"),
                          .value = result.weights,
                          .range = negative ? MechanismStep::Range::signed_values : MechanismStep::Range::positive,
                          .masked = hidden_cells(*in.rule, in.n(), in.m())});
  if (p.out.defined()) result.steps.push_back(gate_step(p.out, GateCurve::swish));
  result.steps.push_back(output_step(p.exact() ? result.weights : Tensor(), in.v, result.output, "Sᵀ q" + p.words()));
  return result;
}

/// Every token's state goes to `keep`.
template <class Keep>
Tensor gated_steps(const MechanismInput& in, const GatedParts& p, Keep keep) {
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
  return p.finish(out);
}

Tensor gated_output(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "gated");
  return gated_steps(in, gated_parts(in, values), [](const Tensor&) {});
}

Recurrence gated_recurrence(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "gated");
  const GatedParts p = gated_parts(in, values);
  Recurrence result;
  result.update = "Sₜ = Gₜ ∘ Sₜ₋₁ + kₜ vₜᵀ";
  result.readout = "oₜ = Sₜᵀ qₜ" + p.words();
  result.gates = p.gates;
  result.output = gated_steps(in, p, [&](const Tensor& state) { result.states.push_back(state.copy()); });
  return result;
}

}  // namespace

Mechanism make_gated() {
  Mechanism m;
  m.id = "gated";
  m.title = to_say("Gated linear attention");
  m.name = to_say("Gated linear (GLA)");
  m.group = to_say("Recurrent");
  m.source = "Yang et al. 2024; Sun et al. 2023";
  m.formula = "Sₜ = Gₜ ∘ Sₜ₋₁ + kₜ vₜᵀ,   oₜ = Sₜᵀ qₜ";
  m.meaning = to_say(
      "Linear attention writes every token into one matrix and never erases. A gate lets the matrix forget: evenly, or "
      "as the token says, for all of it or row by row.");
  m.keywords =
      "GLA RetNet Mamba-2 mLSTM decay gate forms gated linear attention retention exponential data-dependent HGRN RWKV";
  m.parameters = {
      choice_parameter("gate", to_say("Gate"), to_say("What the state is multiplied by at each token."),
                       {to_say("none"), to_say("scalar"), to_say("data-scalar"), to_say("data-vector")}, 3),
      only_where(number_parameter("decay", to_say("Decay γ"), to_say("Of the scalar gate."), 0.5, 1, 0.9),
                 [](const MechanismValues& v, const MechanismShape&) { return v.whole("gate") == scalar; }),
      only_where(number_parameter(
                     "bias", to_say("Gate bias b"),
                     to_say("Of the gates that depend on the token: σ(b + …); learnt in the paper, from 0."), -2, 8, 0),
                 from_token),
      only_where(number_parameter("temperature", to_say("Gate temperature τ"),
                                  to_say("The same gates to the power 1/τ: large τ forgets slowly; 16 in the paper."),
                                  1, 64, 16, true),
                 from_token),
      only_where(whole_parameter("rank", to_say("Rank of W"),
                                 to_say("Of the vector gate's W = W¹ W²; 16 in the paper."), 1, 256, 16, true),
                 [](const MechanismValues& v, const MechanismShape&) { return v.whole("gate") == data_vector; }),
      toggle_parameter("positive", to_say("φ = 1 + elu"), to_say("Off: queries and keys as they are."), false),
      toggle_parameter("norm", to_say("Normalise after"), to_say("Each output row ÷ its root mean square."), true),
      only_where(toggle_parameter("centre", to_say("… less its mean"),
                                  to_say("On: LayerNorm, as in the paper; off: RMS norm."), true),
                 [](const MechanismValues& v, const MechanismShape&) { return v.on("norm"); }),
      output_gate_parameter(),
      only_where(seed_parameter(to_say("of the gates' weights")),
                 [](const MechanismValues& v, const MechanismShape& s) {
                   return from_token(v, s) || v.whole("output-gate") == 0;
                 })};
  m.ours = to_say(
      "Gates are learnt maps of the layer's input in the paper; here they are drawn, on the key, and the output gate's "
      "on the query. LayerNorm has no learnt gains.");
  m.run = run_gated;
  m.output = gated_output;
  m.recurrent = gated_recurrence;
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
    chips.push_back({Role::remark, say("never builds {}×{}", s.n, s.n), ""});
    return chips;
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult& r) -> std::string {
    if (v.whole("gate") == none)
      return said("Without a gate this is plain linear attention: nothing is ever forgotten.");
    const std::string mean = r.facts.empty() ? "" : say("The mean gate is {}. ", r.facts[0].value);
    return mean + (v.whole("gate") == scalar
                       ? said("Every step fades all alike, so weights fall with distance.")
                       : said("The gate's weights are drawn, not learnt: the form is shown, not a trained model."));
  };
  m.needs_causal = true;
  return m;
}

}  // namespace headscope::mechanism
