// A linear state-space model over the values of a head, channel by channel (core/attention/state_space.h has the
// formulas and sources): recurrence, convolution and its form by Fourier transforms are the same function. The
// effective weights are the kernel, the same in every row: weight(t, s) = K_{t−s}. One number for a state (the worked
// example a = 0.9, b = 0.5, c = 1), or the HiPPO-LegS matrices in bilinear steps. Shapes: x (N, d_v). Cost: recurrence
// n N² d_v, or n log n d_v by transforms.

#include <fmt/format.h>

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/state_space.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/tensor/gap.h"

namespace headscope::mechanism {

namespace {

bool one_number(const MechanismValues& v, const MechanismShape&) {
  return v.whole("system") == 0;
}
bool hippo_system(const MechanismValues& v, const MechanismShape&) {
  return v.whole("system") == 1;
}

StateSpace system_of(const MechanismValues& values) {
  const double c = values.number("c");
  if (values.whole("system") == 0) return {1, {values.number("a")}, {values.number("b")}, {c}, 0};
  const Index size = values.whole("size");
  StateSpace continuous{size, hippo_matrix(size), hippo_input(size),
                        std::vector<double>(static_cast<std::size_t>(size), c / static_cast<double>(size)), 0};
  for (double& entry : continuous.a) entry = -entry;
  return discretize(continuous, values.number("step"), Discretization::bilinear);
}

std::vector<double> channel(const Tensor& v, Index e) {
  std::vector<double> u;
  for (Index t = 0; t < v.dim(0); ++t) u.push_back(static_cast<double>(v.at(t, e)));
  return u;
}

Tensor matrix(const std::vector<double>& numbers, Index rows, Index columns) {
  Tensor out = Tensor::uninitialized({rows, columns});
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) out.ref(i, j) = static_cast<float>(nth(numbers, i * columns + j));
  return out;
}

Tensor by_transforms(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "state-space");
  const auto k = kernel(system_of(values), in.n());
  Tensor out = Tensor::uninitialized({in.n(), in.d_v()});
  for (Index e = 0; e < in.d_v(); ++e) {
    check(in);
    const auto y = convolve_fft(k, channel(in.v, e));
    for (Index t = 0; t < in.n(); ++t) out.ref(t, e) = static_cast<float>(nth(y, t));
  }
  return out;
}

Recurrence state_space_recurrence(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "state-space");
  const StateSpace system = system_of(values);
  Recurrence result{"xₜ = Ā xₜ₋₁ + B̄ uₜ", "yₜ = C xₜ", {}, false, Tensor::uninitialized({in.n(), in.d_v()})};
  for (Index t = 0; t < in.n(); ++t) result.states.push_back(Tensor::uninitialized({system.size, in.d_v()}));
  for (Index e = 0; e < in.d_v(); ++e) {
    std::vector<double> states;
    const auto y = run_recurrence(system, channel(in.v, e), &states);
    for (Index t = 0; t < in.n(); ++t) {
      result.output.ref(t, e) = static_cast<float>(nth(y, t));
      for (Index i = 0; i < system.size; ++i)
        nth(result.states, t).ref(i, e) = static_cast<float>(nth(states, t * system.size + i));
    }
  }
  return result;
}

/// The first channel and what a HiPPO state of `size` numbers remembers of it at the end.
MechanismCurve recalled(const MechanismInput& in, Index size) {
  const auto u = channel(in.v, 0);
  const auto states = hippo_memory(u, size);
  const auto memory = hippo_recall({states.data() + (in.n() - 1) * size, static_cast<std::size_t>(size)}, in.n());
  MechanismCurve curve{said("The first channel, and what the HiPPO state still holds of it"),
                       said("token"),
                       said("value"),
                       {},
                       false,
                       {}};
  curve.lines = {{said("input"), {}, u}, {say("recalled from {} numbers", size), {}, memory}};
  for (auto& line : curve.lines)
    for (Index t = 0; t < in.n(); ++t) line.x.push_back(static_cast<double>(t));
  return curve;
}

MechanismCurve twice(const std::string& title, const std::string& x, const std::string& y,
                     const std::vector<double>& line, const std::vector<double>& dots) {
  MechanismCurve curve{title, x, y, {{said("convolution"), {}, line}, {said("recurrence"), {}, dots}}, false, {}};
  for (auto& each : curve.lines)
    for (std::size_t t = 0; t < each.y.size(); ++t) each.x.push_back(static_cast<double>(t));
  curve.lines[1].dots = true;
  return curve;
}

MechanismResult run_state_space(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "state-space");
  const StateSpace system = system_of(values);
  const auto k = kernel(system, in.n());
  MechanismResult result;
  result.kind = MapKind::effective;
  result.weights = Tensor::zeros({in.n(), in.m()});
  for (Index t = 0; t < in.n(); ++t)
    for (Index s = 0; s <= t; ++s) result.weights.ref(t, s) = static_cast<float>(nth(k, t - s));
  result.output = product(result.weights, in.v);
  if (detail != Detail::steps) return result;
  const bool hippo = values.whole("system") == 1;
  result.steps.push_back(given("u", "u = V", in.v, MechanismAxis::key));
  if (hippo)
    result.steps.push_back({.id = "hippo",
                            .title = said("HiPPO-LegS A"),
                            .formula = said("√((2n+1)(2k+1)) below the diagonal, n + 1 on it"),
                            .value = matrix(hippo_matrix(system.size), system.size, system.size),
                            .rows = MechanismAxis::other,
                            .columns = MechanismAxis::other});
  result.steps.push_back({.id = "a",
                          .title = "Ā",
                          .formula = hippo ? "(1 + ΔA/2)⁻¹ (1 − ΔA/2)" : "a",
                          .value = matrix(system.a, system.size, system.size),
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "kernel",
                          .title = said("Kernel K"),
                          .formula = said("C B̄, C Ā B̄, C Ā² B̄, …: the answer to an impulse"),
                          .value = matrix(k, 1, in.n()),
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "weights",
                          .title = said("Effective weights"),
                          .formula = said("K at distance t − s: the same in every row"),
                          .value = result.weights,
                          .masked = hidden_cells(*in.rule, in.n(), in.m())});
  result.steps.push_back(output_step(result.weights, in.v, result.output, "K ∗ u"));
  // The same function twice: a line by convolution, dots by the recurrence.
  const Tensor fast = by_transforms(in, values), steps = state_space_recurrence(in, values).output;
  std::vector<double> impulse(static_cast<std::size_t>(in.n()), 0.0);
  impulse[0] = 1;
  const auto by_steps = [](const Tensor& x) { return channel(x, 0); };
  result.curves = {
      twice(said("Answer to an impulse"), said("tokens later"), "K", k, run_recurrence(system, impulse)),
      twice(said("The first channel of the output"), said("token"), "y", by_steps(result.output), by_steps(steps)),
      recalled(in, hippo ? system.size : 8)};
  const double gap_fft = greatest_gap(fast, result.output), gap_steps = greatest_gap(steps, result.output);
  result.facts = {{said("Recurrence against convolution"), fmt::format("{:.1e}", gap_steps),
                   said("largest |difference| of an output")},
                  {said("Fourier form against convolution"), fmt::format("{:.1e}", gap_fft),
                   said("largest |difference| of an output")}};
  return result;
}

}  // namespace

Mechanism make_state_space() {
  Mechanism m;
  m.id = "state-space";
  m.title = to_say("A state-space model (S4): recurrence = convolution");
  m.name = to_say("State space (S4)");
  m.group = to_say("Recurrent");
  m.source = "Gu et al. 2022; HiPPO: Gu et al. 2020";
  m.formula = "xₜ = Ā xₜ₋₁ + B̄ uₜ,  yₜ = C xₜ   =   y = K ∗ u";
  m.meaning = to_say(
      "A linear system carries a state from token to token. Unrolled it is one fixed kernel, computed at once by "
      "Fourier transforms; the tokens themselves have no say in it.");
  m.keywords =
      "SSM S4 HiPPO Legendre convolution FFT kernel impulse discretization zero-order hold long memory structured "
      "state space";
  m.parameters = {
      choice_parameter("system", to_say("System"), to_say("A state of one number, or the HiPPO-LegS matrices."),
                       {to_say("scalar"), to_say("hippo")}),
      only_where(
          number_parameter("a", "a", to_say("What is left of the state after a token (one number)."), -0.99, 1, 0.9),
          one_number),
      only_where(number_parameter("b", "b", to_say("What a token adds (one number)."), -2, 2, 0.5), one_number),
      number_parameter("c", "c", to_say("What is read of the state."), -2, 2, 1),
      only_where(whole_parameter("size", to_say("State size N"), to_say("Numbers in a HiPPO state."), 1, 32, 8),
                 hippo_system),
      only_where(
          number_parameter("step", to_say("Step Δ"), to_say("Time between tokens (HiPPO)."), 0.001, 1, 0.05, true),
          hippo_system)};
  m.run = run_state_space;
  m.output = by_transforms;
  m.recurrent = state_space_recurrence;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d_v);
    const double size = v.whole("system") == 1 ? v.number("size") : 1;
    // Three transforms of twice the length, n log₂ n products each.
    return MechanismCost{3 * 2 * n * std::log2(2 * n) * d, size * d * 4, 0, 4 * 2 * n * d};
  };
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult&) -> std::string {
    return said(
        "Every row of the weights is the same kernel, shifted: what is remembered depends on how long ago it was, "
        "never on what it was.");
  };
  m.needs_causal = true;
  return m;
}

}  // namespace headscope::mechanism
