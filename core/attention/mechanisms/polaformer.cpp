// PolaFormer (Meng et al., PolaFormer: Polarity-aware Linear Attention for Vision Transformers, 2025): queries and keys
// are split into positive and negative parts, x = x⁺ − x⁻, each raised to a power p > 1 that sharpens, and both
// interactions are kept: of the same sign, [q⁺, q⁻]·[k⁺, k⁻], and of opposite signs, [q⁺, q⁻]·[k⁻, k⁺]. V is split
// along its channels: the first half is read by the one, the second by the other, each times a coefficient (learnt as
// matrices G in the paper, one number each here). In the paper each channel has a power of its own, learnt: here they
// are one, or learnt on the text that is open (polaformer_fit.h). With p = 1, same − opposite is q·k exactly. Shapes:
// features (n, 2d), twice; state 2 · 2d (d_v/2 + 1) floats. Cost: 2 n 2d d_v multiply-adds.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/attention/mechanisms/polaformer_fit.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// [x⁺ᵖ, x⁻ᵖ], or with the halves exchanged.
Tensor polar(const Tensor& x, const std::vector<double>& powers, bool exchanged) {
  const Index d = x.dim(1);
  Tensor out = Tensor::zeros({x.dim(0), 2 * d});
  for (Index i = 0; i < x.dim(0); ++i)
    for (Index c = 0; c < d; ++c) {
      const double value = static_cast<double>(x.at(i, c));
      const auto part = static_cast<float>(std::pow(std::abs(value), nth(powers, c)));
      out.ref(i, (value >= 0) != exchanged ? c : d + c) = part;
    }
  return out;
}

struct PolaformerParts {
  Kernel same, opposite;
  MechanismInput first, second;  // with their channels of v
  Index half;
  PolarFit fit;  // without losses where nothing was learnt
};

bool learns(const MechanismValues& values) {
  return values.whole("powers") == 1;
}

PolaformerParts polaformer_parts(const MechanismInput& in, const MechanismValues& values) {
  const PolarFit fit = learns(values)
                           ? fit_polar(in)
                           : PolarFit{std::vector<double>(static_cast<std::size_t>(in.d()), values.number("power")),
                                      values.number("same"),
                                      values.number("opposite"),
                                      {}};
  const Index half = (in.d_v() + 1) / 2;
  const Tensor q = polar(in.q, fit.powers, false), k = polar(in.k, fit.powers, false);
  PolaformerParts parts{{q, k, said("same sign"), Kernel::Norm::sum},
                        {q, polar(in.k, fit.powers, true), said("opposite signs"), Kernel::Norm::sum},
                        in,
                        in,
                        half,
                        fit};
  parts.first.v = in.v.slice(1, 0, half).copy();
  parts.second.v = in.v.slice(1, half, in.d_v()).copy();
  return parts;
}

Tensor joined(const Tensor& first, const Tensor& second, double g_same, double g_opposite) {
  Tensor out = Tensor::zeros({first.dim(0), first.dim(1) + second.dim(1)});
  for (Index i = 0; i < out.dim(0); ++i)
    for (Index c = 0; c < out.dim(1); ++c)
      out.ref(i, c) =
          static_cast<float>(c < first.dim(1) ? g_same * static_cast<double>(first.at(i, c))
                                              : g_opposite * static_cast<double>(second.at(i, c - first.dim(1))));
  return out;
}

MechanismResult run_polaformer(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const PolaformerParts p = polaformer_parts(in, values);
  const double g_same = p.fit.same, g_opposite = p.fit.opposite;
  const MechanismResult same = kernel_attention(p.first, p.same, Detail::weights);
  const MechanismResult opposite = kernel_attention(p.second, p.opposite, Detail::weights);
  MechanismResult result;
  result.kind = MapKind::effective;
  result.output = joined(same.output, opposite.output, g_same, g_opposite);
  result.output_is_weights_times_v = false;
  // What a value counts for on average over its channels.
  const double share = static_cast<double>(p.half) / static_cast<double>(std::max<Index>(in.d_v(), 1));
  result.weights = Tensor::zeros({in.n(), in.m()});
  for (std::size_t c = 0; c < result.weights.values().size(); ++c)
    result.weights.mutable_values()[c] =
        static_cast<float>(share * g_same * static_cast<double>(same.weights.values()[c]) +
                           (1 - share) * g_opposite * static_cast<double>(opposite.weights.values()[c]));
  if (learns(values))
    result.facts.push_back(
        {said("Loss of the fit"),
         fmt::format("{} → {}", text(p.fit.losses.front()), text(*std::ranges::min_element(p.fit.losses))),
         say("‖O − O_softmax‖² ÷ ‖O_softmax‖² of the first {} tokens, at power 3 and at the best of {} steps",
             std::min(in.n(), most_fitted_tokens), fit_steps)});
  if (detail != Detail::steps) return result;
  auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  add_inputs(result.steps, in);
  Tensor powers = Tensor::zeros({1, in.d()});
  for (Index c = 0; c < in.d(); ++c) powers.ref(0, c) = static_cast<float>(nth(p.fit.powers, c));
  result.steps.push_back(
      {.id = "powers",
       .title = said("Powers p"),
       .formula = learns(values) ? said("of each channel, learnt") : said("of each channel: one for all"),
       .value = powers,
       .range = MechanismStep::Range::positive,
       .rows = MechanismAxis::other,
       .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "polar-q",
                          .title = "[q⁺, q⁻]ᵖ",
                          .formula = said("positive and negative parts to the power p"),
                          .value = p.same.query,
                          .range = MechanismStep::Range::positive,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "polar-k",
                          .title = "[k⁺, k⁻]ᵖ",
                          .formula = said("likewise"),
                          .value = p.same.key,
                          .range = MechanismStep::Range::positive,
                          .rows = MechanismAxis::key,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "same",
                          .title = said("Same sign"),
                          .formula = said("[q⁺, q⁻]·[k⁺, k⁻], each row ÷ its sum"),
                          .value = same.weights,
                          .range = MechanismStep::Range::positive,
                          .masked = hidden,
                          .explain = explain_product_t(p.same.query, p.same.key)});
  result.steps.push_back({.id = "opposite",
                          .title = said("Opposite signs"),
                          .formula = said("[q⁺, q⁻]·[k⁻, k⁺], each row ÷ its sum"),
                          .value = opposite.weights,
                          .range = MechanismStep::Range::positive,
                          .masked = hidden,
                          .explain = explain_product_t(p.opposite.query, p.opposite.key)});
  result.steps.push_back({.id = "weights",
                          .title = said("Mean over channels"),
                          .formula = said("of both, by their channels and G"),
                          .value = result.weights,
                          .range = MechanismStep::Range::signed_values,
                          .masked = std::move(hidden)});
  result.steps.push_back(output_step({}, in.v, result.output, said("[G_s · same V₁, G_o · opposite V₂]")));
  if (learns(values)) {
    MechanismCurve curve{said("Loss of the fit"),  said("step"), "‖O − O_softmax‖² ÷ ‖O_softmax‖²",
                         {{"", {}, p.fit.losses}}, false,        {}};
    for (std::size_t step = 0; step < p.fit.losses.size(); ++step)
      curve.lines[0].x.push_back(static_cast<double>(step));
    curve.from_zero = true;
    result.curves.push_back(std::move(curve));
  }
  return result;
}

Tensor polaformer_output(const MechanismInput& in, const MechanismValues& values) {
  const PolaformerParts p = polaformer_parts(in, values);
  return joined(kernel_output(p.first, p.same), kernel_output(p.second, p.opposite), p.fit.same, p.fit.opposite);
}

Recurrence polaformer_recurrence(const MechanismInput& in, const MechanismValues& values) {
  const PolaformerParts p = polaformer_parts(in, values);
  Recurrence same = kernel_recurrence(p.first, p.same);
  const Recurrence opposite = kernel_recurrence(p.second, p.opposite);
  same.update = said("two states: same sign, opposite signs; each Sₜ = Sₜ₋₁ + φ(kₜ) vₜᵀ");
  same.output = joined(same.output, opposite.output, p.fit.same, p.fit.opposite);
  return same;
}

}  // namespace

Mechanism make_polaformer() {
  Mechanism m;
  m.id = "polaformer";
  m.title = to_say("PolaFormer: both polarities, sharpened by a power");
  m.name = to_say("PolaFormer");
  m.group = to_say("Low rank & kernel");
  m.source = "Meng et al. 2025";
  m.formula = to_say("same: [q⁺, q⁻]·[k⁺, k⁻]   opposite: [q⁺, q⁻]·[k⁻, k⁺]");
  m.meaning = to_say(
      "ReLU throws negative parts away; here they are kept, in two streams for agreeing and opposing signs, and a "
      "power above 1 brings back the sharpness that exp gave.");
  m.keywords = "polarity aware negative power learnable powers per channel learnt fit";
  const auto one_power = [](const MechanismValues& v, const MechanismShape&) { return !learns(v); };
  m.parameters = {
      choice_parameter(
          "powers", to_say("Powers"),
          to_say("One for all channels; or one for each, learnt with both coefficients on this text's own q, k "
                 "and v against softmax's output."),
          {to_say("one"), to_say("learnt")}),
      only_where(number_parameter("power", to_say("Power p"), to_say("Above 1 strong similarities gain on weak ones."),
                                  1, 8, 3),
                 one_power),
      only_where(number_parameter("same", to_say("Coefficient, same"), to_say("Learnt in the paper."), -2, 2, 1),
                 one_power),
      only_where(
          number_parameter("opposite", to_say("Coefficient, opposite"), to_say("Learnt in the paper."), -2, 2, 1),
          one_power)};
  m.run = run_polaformer;
  m.output = polaformer_output;
  m.recurrent = polaformer_recurrence;
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return kernel_cost(s, 2 * s.d); };
  m.chips = [](const MechanismShape& s, const MechanismValues&) {
    using Role = ShapeChip::Role;
    return std::vector<ShapeChip>{chip(Role::query, "Q", s.rows(), s.d),
                                  chip(Role::query, "[q⁺, q⁻]ᵖ", s.rows(), 2 * s.d),
                                  chip(Role::value, "[k⁺, k⁻]ᵀ V₁", 2 * s.d, (s.d_v + 1) / 2, "·"),
                                  chip(Role::value, "[k⁻, k⁺]ᵀ V₂", 2 * s.d, s.d_v / 2, said("and")),
                                  chip(Role::output, "O", s.rows(), s.d_v),
                                  {Role::remark, say("never builds {}×{}", s.rows(), s.n), ""}};
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult& r) -> std::string {
    const std::string halves = said(
        "Half of the channels are read by what agrees with the query, half by what opposes it: the map is their "
        "mean. ");
    if (!learns(v))
      return halves + said("One power for all channels: take learnt, and each gets its own, fitted here.");
    return halves + said("Powers and coefficients were fitted to this head's softmax output, later tokens included: ") +
           (r.facts.empty() ? "" : say("squared error {}, the best of {} steps.", r.facts[0].value, fit_steps));
  };
  return m;
}

}  // namespace headscope::mechanism
