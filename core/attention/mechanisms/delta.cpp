// The delta rule (Schlag, Irie & Schmidhuber, Linear Transformers Are Secretly Fast Weight Programmers, 2021; Yang et
// al., Parallelizing Linear Transformers with the Delta Rule, 2024): before a value is written under a key, what the
// state holds under that key is taken out.
//   S_t = S_{t−1} − β k_t (k_tᵀ S_{t−1}) + β k_t v_tᵀ = (I − β k_t k_tᵀ) S_{t−1} + β k_t v_tᵀ,   o_t = S_tᵀ q_t,
// keys of length 1. With β = 1 reading with a key just written returns exactly its value. With the gate γ the state
// also fades (Gated DeltaNet; Yang, Kautz & Hatamizadeh 2024). Parallel form: weight(t, s) = β q_tᵀ [Π_{u = t…s+1} γ (I
// − β k_u k_uᵀ)] k_s. Shapes: S (d, d_v). Cost: 4 n d d_v multiply-adds; state d d_v floats.

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// Queries are brought to length 1 too, so that a read has the size of a value.
struct DeltaParts {
  Tensor q, k;
  double beta, decay;
};
DeltaParts delta_parts(const MechanismInput& in, const MechanismValues& values) {
  return {unit_rows(in.q), unit_rows(in.k), values.number("beta"), values.number("decay")};
}

MechanismResult run_delta(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "delta");
  const DeltaParts p = delta_parts(in, values);
  MechanismResult result;
  result.kind = MapKind::effective;
  result.weights = Tensor::zeros({in.n(), in.m()});
  std::vector<double> u(static_cast<std::size_t>(in.d()));
  for (Index t = 0; t < in.n(); ++t) {
    check(in);
    for (Index c = 0; c < in.d(); ++c) nth(u, c) = static_cast<double>(p.q.at(t, c));
    for (Index s = t; s >= 0; --s) {
      double along = 0;
      for (Index c = 0; c < in.d(); ++c) along += nth(u, c) * static_cast<double>(p.k.at(s, c));
      result.weights.ref(t, s) = static_cast<float>(p.beta * along);
      for (Index c = 0; c < in.d(); ++c) {
        double& part = nth(u, c);
        part = p.decay * (part - p.beta * along * static_cast<double>(p.k.at(s, c)));
      }
    }
  }
  result.output = product(result.weights, in.v);
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  const Tensor overlap = product_t(p.k, p.k);
  result.steps.push_back({.id = "overlap",
                          .title = "k·k",
                          .formula = said("keys of length 1: how much one overwrites another"),
                          .value = overlap,
                          .rows = MechanismAxis::key,
                          .masked = hidden,
                          .explain = explain_product_t(p.k, p.k)});
  result.steps.push_back({.id = "similarity",
                          .title = "q·k",
                          .formula = said("what linear attention would weigh with"),
                          .value = product_t(p.q, p.k),
                          .masked = hidden,
                          .explain = explain_product_t(p.q, p.k)});
  result.steps.push_back({.id = "weights",
                          .title = said("Effective weights"),
                          .formula = said("what is left of it after later keys"),
                          .value = result.weights,
                          .masked = std::move(hidden)});
  result.steps.push_back(output_step(result.weights, in.v, result.output, "Sᵀ q"));
  return result;
}

template <class Keep>
Tensor delta_steps(const MechanismInput& in, const DeltaParts& p, Keep keep) {
  Tensor out = Tensor::zeros({in.n(), in.d_v()}), state = Tensor::zeros({in.d(), in.d_v()});
  std::vector<float> held(static_cast<std::size_t>(in.d_v()));
  for (Index t = 0; t < in.n(); ++t) {
    if (t % 256 == 0) check(in);
    std::ranges::fill(held, 0.0f);
    const auto fade = static_cast<float>(p.decay), beta = static_cast<float>(p.beta);
    for (Index c = 0; c < in.d(); ++c)
      for (Index e = 0; e < in.d_v(); ++e) {
        // The first token has nothing before it; from then on the past fades before it is read.
        state.ref(c, e) *= fade;
        nth(held, e) += p.k.at(t, c) * state.at(c, e);
      }
    for (Index c = 0; c < in.d(); ++c)
      for (Index e = 0; e < in.d_v(); ++e) {
        state.ref(c, e) += beta * p.k.at(t, c) * (in.v.at(t, e) - nth(held, e));
        out.ref(t, e) += p.q.at(t, c) * state.at(c, e);
      }
    keep(state);
  }
  return out;
}

Tensor delta_output(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "delta");
  return delta_steps(in, delta_parts(in, values), [](const Tensor&) {});
}

Recurrence delta_recurrence(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "delta");
  Recurrence result;
  result.update = "Sₜ = γ Sₜ₋₁ + β kₜ (vₜ − γ Sₜ₋₁ᵀ kₜ)ᵀ";
  result.readout = "oₜ = Sₜᵀ qₜ";
  result.output =
      delta_steps(in, delta_parts(in, values), [&](const Tensor& state) { result.states.push_back(state.copy()); });
  return result;
}

}  // namespace

Mechanism make_delta() {
  Mechanism m;
  m.id = "delta";
  m.title = to_say("The delta rule: erase, then write");
  m.name = to_say("Delta rule (DeltaNet)");
  m.group = to_say("Recurrent");
  m.source = "Schlag et al. 2021; Yang et al. 2024";
  m.formula = "Sₜ = γ Sₜ₋₁ + β kₜ (vₜ − γ Sₜ₋₁ᵀ kₜ)ᵀ,   oₜ = Sₜᵀ qₜ";
  m.meaning = to_say(
      "Linear attention piles values up under similar keys. Here the value held under a key is taken out before the "
      "new one goes in, so the state keeps the latest value of each key.");
  m.keywords = "DeltaNet fast weight gated delta rule associative memory erase write online learning";
  m.parameters = {number_parameter("beta", to_say("Write strength β"),
                                   to_say("1 replaces what is held, 0 writes nothing."), 0, 1, 1),
                  number_parameter("decay", to_say("Decay γ"), to_say("What the state is multiplied by at each token."),
                                   0.5, 1, 1)};
  m.run = run_delta;
  m.output = delta_output;
  m.recurrent = delta_recurrence;
  m.cost = [](const MechanismShape& s, const MechanismValues&) {
    const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d), d_v = static_cast<double>(s.d_v);
    return MechanismCost{4 * n * d * d_v, d * d_v * 4, 0, 4 * 2 * n * (d + d_v)};
  };
  m.chips = [](const MechanismShape& s, const MechanismValues&) {
    using Role = ShapeChip::Role;
    return std::vector<ShapeChip>{chip(Role::key, said("held: Sᵀ kₜ"), 1, s.d_v),
                                  chip(Role::value, said("v − held"), 1, s.d_v),
                                  chip(Role::plain, "S + β kₜ (…)ᵀ", s.d, s.d_v),
                                  chip(Role::query, "· qₜ", s.d, 1, ""),
                                  chip(Role::output, "O", s.n, s.d_v),
                                  {Role::remark, say("never builds {}×{}", s.n, s.n), ""}};
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) -> std::string {
    return v.number("beta") == 0
               ? said("At β = 0 nothing is written: weights and outputs are 0.")
               : said(
                     "A later key that resembles an earlier one takes its place: repeated keys leave weight only on "
                     "their latest position.");
  };
  m.needs_causal = true;
  return m;
}

}  // namespace headscope::mechanism
