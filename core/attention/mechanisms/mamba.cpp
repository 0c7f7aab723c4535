// The selective scan of Mamba over one head (core/attention/selective_scan.h has the formulas and sources), B from the
// keys, C from the queries, x from the values: the hidden attention matrices are read as effective weights beside
// softmax's. As in the paper (§ 3.2, § 3.6): zero-order hold; Δ_t = softplus(parameter_e + s_Δ(token)), s_Δ one number
// for all channels, the parameters by channel with softplus(parameter) drawn from Uniform(0.001, 0.1); A_i = −(i + 1)
// for every channel (S4D-real; Gu, Gupta, Goel & Ré 2022).
// Ours: a head has no tokens of its own, so s_Δ = sensitivity · kₜ·w ÷ √d with a drawn direction w, and what makes it
// selective is one slider: at 0 every token counts alike; C is scaled as scores are; the block's convolution, its gate
// and the skip D x are left out. Every channel has a matrix of its own: shown is their mean, or one of them; only where
// all channels share their steps is the output these weights times v.
// Shapes: state (d, d_v). Cost: 3 n d d_v multiply-adds.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/selective_scan.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"
#include "core/tensor/gap.h"

namespace headscope::mechanism {

namespace {

bool share_steps(const MechanismValues& values) {
  return values.whole("steps") == 1;
}

SelectiveScan scan_of(const MechanismInput& in, const MechanismValues& values) {
  SelectiveScan scan{in.v, in.k, times(in.q, in.scale), {}, {}, static_cast<SelectiveScan::Hold>(values.whole("hold"))};
  std::vector<double> parameters(static_cast<std::size_t>(in.d_v()), values.number("bias"));
  if (!share_steps(values)) {
    Random random(values.seed() + 1);
    for (double& each : parameters) each = std::log(std::expm1(0.001 + 0.099 * random.uniform()));  // softplus⁻¹
  }
  const Tensor direction = gaussian(in.d(), 1, values.seed());
  for (Index t = 0; t < in.n(); ++t) {
    double along = 0;
    for (Index c = 0; c < in.d(); ++c)
      along += static_cast<double>(in.k.at(t, c)) * static_cast<double>(direction.at(c, 0));
    along /= std::sqrt(static_cast<double>(in.d()));
    for (const double parameter : parameters)
      scan.delta.push_back(softplus(parameter + values.number("sensitivity") * along));
  }
  for (Index i = 0; i < in.d(); ++i) scan.a.push_back(-values.number("rate") * static_cast<double>(i + 1));
  return scan;
}

/// The channel whose weights are shown; −1: their mean.
Index shown_channel(const MechanismInput& in, const MechanismValues& values) {
  return share_steps(values) ? 0 : std::min(values.whole("channel"), in.d_v()) - 1;
}

Tensor shown_weights(const SelectiveScan& scan, Index channel, const std::stop_token& stop) {
  if (channel >= 0) return hidden_attention(scan, channel, stop);
  const Index n = scan.x.dim(0), channels = scan.x.dim(1);
  std::vector<double> sums(static_cast<std::size_t>(n * n), 0.0);
  for (Index e = 0; e < channels; ++e) {
    const Tensor own = hidden_attention(scan, e, stop);
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(own.values()[c]);
  }
  Tensor mean = Tensor::uninitialized({n, n});
  for (std::size_t c = 0; c < sums.size(); ++c)
    mean.mutable_values()[c] = static_cast<float>(sums[c] / static_cast<double>(channels));
  return mean;
}

MechanismResult run_mamba(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "mamba");
  check(in);
  const SelectiveScan scan = scan_of(in, values);
  const Index channel = shown_channel(in, values), channels = in.d_v();
  MechanismResult result;
  result.kind = MapKind::effective;
  result.output_is_weights_times_v = share_steps(values) || channels == 1;
  result.output = scan_parallel(scan);
  if (detail == Detail::output) return result;
  result.weights = shown_weights(scan, channel, in.stop);
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  Tensor delta = Tensor::uninitialized({in.n(), channels}), keep = Tensor::uninitialized({in.n(), in.d()});
  MechanismCurve steps{
      said("Step length Δ of each token, mean over channels"), said("token"), "Δ", {{"Δ", {}, {}}}, false, {}};
  for (Index t = 0; t < in.n(); ++t) {
    double mean = 0;
    for (Index e = 0; e < channels; ++e) {
      const double length = nth(scan.delta, t * channels + e);
      delta.ref(t, e) = static_cast<float>(length);
      mean += length / static_cast<double>(channels);
    }
    const double shown = channel < 0 ? mean : static_cast<double>(delta.at(t, channel));
    for (Index i = 0; i < in.d(); ++i) keep.ref(t, i) = static_cast<float>(std::exp(shown * nth(scan.a, i)));
    steps.lines[0].x.push_back(static_cast<double>(t));
    steps.lines[0].y.push_back(mean);
  }
  const bool shared = share_steps(values);
  const std::string of = shared         ? ""
                         : channel >= 0 ? say(", of channel {}", channel + 1)
                                        : said(", mean over channels");
  result.steps.push_back({.id = "delta",
                          .title = "Δ",
                          .formula = shared ? said("softplus(bias + sensitivity · kₜ·w ÷ √d)")
                                            : said("softplus(parameter of the channel + sensitivity · kₜ·w ÷ √d)"),
                          .value = delta,
                          .range = MechanismStep::Range::positive,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "keep",
                          .title = "Ā = exp(Δ A)",
                          .formula = std::string(said("what each token leaves of the state")) +
                                     (channel < 0 ? said(", at the mean Δ") : of),
                          .value = keep,
                          .range = MechanismStep::Range::probability,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "weights",
                          .title = said("Hidden attention"),
                          .formula = "Cₜ · exp(A Σ Δ) ⊙ B̄ₛ" + of,
                          .value = result.weights,
                          .masked = hidden_cells(*in.rule, in.n(), in.m())});
  result.steps.push_back(output_step(result.output_is_weights_times_v ? result.weights : Tensor(), in.v, result.output,
                                     shared ? "α V" : said("each channel by its own α")));
  result.curves = {std::move(steps)};
  int rounds = 0;
  const Tensor parallel = scan_parallel(scan, &rounds), recurrent = scan_recurrent(scan);
  result.facts = {{said("Parallel scan"), say("{} rounds", rounds), said("⌈log₂ n⌉ rounds of joined steps")},
                  {said("Parallel against recurrent"), fmt::format("{:.1e}", greatest_gap(parallel, recurrent)),
                   said("largest |difference| of an output")}};
  return result;
}

Tensor mamba_output(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "mamba");
  return scan_recurrent(scan_of(in, values));
}

}  // namespace

Mechanism make_mamba() {
  Mechanism m;
  m.id = "mamba";
  m.title = to_say("Mamba: a selective state space, and its hidden attention");
  m.name = to_say("Mamba (selective scan)");
  m.group = to_say("Recurrent");
  m.source = "Gu & Dao 2023; Ali et al. 2024";
  m.formula = "hₜ = exp(Δₜ A) hₜ₋₁ + B̄ₜ xₜ,   B̄ = (exp(Δ A) − 1) ÷ A · B,   yₜ = Cₜ · hₜ";
  m.meaning = to_say(
      "A state space whose step length Δ, input B and output C follow from the token: a long step overwrites the past, "
      "a short one passes the token over. Written out it is an attention matrix that was never computed.");
  m.keywords = "selective scan SSM S6 hidden attention parallel scan state space model";
  m.ours = to_say(
      "The step follows from the key along a drawn direction, for want of the learnt map of the token; the block's "
      "convolution, gate and skip are left out; shown is the mean of the channels' matrices.");
  m.parameters = {
      number_parameter("sensitivity", to_say("Selectivity"), to_say("How much Δ depends on the token; 0 = not at all."),
                       0, 8, 2),
      choice_parameter("hold", "B̄", to_say("By zero-order hold, as in the paper, or Euler's Δ B, as in its code."),
                       {to_say("zero-order"), to_say("euler")}),
      choice_parameter(
          "steps", to_say("Step lengths"),
          to_say("Each channel its own, softplus of its parameter drawn from 0.001 … 0.1 as in the paper; or all "
                 "channels one, from the step bias."),
          {to_say("channels"), to_say("shared")}),
      only_where(number_parameter("bias", to_say("Step bias"),
                                  to_say("Before softplus, of shared steps: small Δ remembers long."), -6, 3, -2),
                 [](const MechanismValues& v, const MechanismShape&) { return v.whole("steps") == 1; }),
      number_parameter("rate", to_say("Decay rate"), to_say("A = −rate, −2 rate, …; 1 in the paper."), 0.001, 2, 1,
                       true),
      only_where(whole_parameter("channel", to_say("Channel shown"),
                                 to_say("Whose weights; 0: the mean over all channels."), 0, 256, 0),
                 [](const MechanismValues& v, const MechanismShape&) { return v.whole("steps") == 0; }),
      only_where(seed_parameter(to_say("of the direction w and the channels' parameters")),
                 [](const MechanismValues& v, const MechanismShape&) {
                   return v.whole("steps") == 0 || v.number("sensitivity") > 0;
                 })};
  m.run = run_mamba;
  m.output = mamba_output;
  m.recurrent = [](const MechanismInput& in, const MechanismValues& values) {
    need_causal(in, "mamba");
    Recurrence result{"hₜ = exp(Δₜ A) ⊙ hₜ₋₁ + B̄ₜ xₜᵀ", "yₜ = hₜᵀ Cₜ", {}, false, {}};
    result.output = scan_recurrent(scan_of(in, values), &result.states);
    return result;
  };
  m.cost = [](const MechanismShape& s, const MechanismValues&) {
    const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d), d_v = static_cast<double>(s.d_v);
    return MechanismCost{3 * n * d * d_v, d * d_v * 4, 0, 4 * 2 * n * (d + d_v)};
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) -> std::string {
    return v.number("sensitivity") == 0
               ? said("At selectivity 0 all steps have one length: every token fades at the same pace.")
               : said("Columns of tokens with a long step stand out, and dim what lies to their left.");
  };
  m.needs_causal = true;
  return m;
}

}  // namespace headscope::mechanism
