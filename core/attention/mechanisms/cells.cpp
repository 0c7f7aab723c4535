// What attention took the place of: an RNN and an LSTM that read the values of the head one after another
// (core/attention/recurrent_cells.h has the cells, their sources and the exact influence). Their weights are drawn, not
// learnt: what is shown is how the form itself forgets. The "weights" are ‖∂h_t / ∂x_s‖, in the unit of attention's own
// ‖∂o_t / ∂v_s‖ = w_ts √d_v.
// Shapes: x (n, d_v), h (n, d_v). Cost: 2 n d_v² multiply-adds for the RNN, four times that for the LSTM.

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/attention/recurrent_cells.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

RnnCell rnn_of(const MechanismInput& in, const MechanismValues& values) {
  return random_rnn(in.d_v(), in.d_v(), values.number("gain"), values.seed());
}
LstmCell lstm_of(const MechanismInput& in, const MechanismValues& values, double forget) {
  return random_lstm(in.d_v(), in.d_v(), values.number("gain"), forget, values.seed());
}

/// The last row of `influence` by distance from the last token.
MechanismCurve::Line by_distance(std::string label, const Tensor& influence) {
  MechanismCurve::Line line{std::move(label), {}, {}};
  const Index last = influence.dim(0) - 1, n = influence.dim(1);
  for (Index s = n - 1; s >= 0; --s) {
    line.x.push_back(static_cast<double>(n - 1 - s));
    line.y.push_back(std::log10(std::max(static_cast<double>(influence.at(last, s)), 1e-12)));
  }
  return line;
}

/// How much of each token is left at the last one, with attention's one hop beside it.
MechanismCurve forgetting(const MechanismInput& in, const MechanismValues& values, double forget) {
  MechanismCurve curve{said("Influence on the last token, by distance"),
                       said("tokens back"),
                       said("log₁₀ ‖∂ last ÷ ∂ token‖"),
                       {},
                       false,
                       {}};
  curve.lines.push_back(by_distance("RNN", rnn_influence(rnn_of(in, values), in.v, true, in.stop)));
  curve.lines.push_back(by_distance("LSTM", lstm_influence(lstm_of(in, values, forget), in.v, true, in.stop)));
  const double unit = std::sqrt(static_cast<double>(in.d_v()));
  curve.lines.push_back(by_distance(said("attention"), times(softmax_reference(in).weights, static_cast<float>(unit))));
  return curve;
}

MechanismResult run_rnn_cell(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "rnn");
  const RnnCell cell = rnn_of(in, values);
  MechanismResult result;
  result.kind = MapKind::effective;
  result.output_is_weights_times_v = false;
  result.output = run_rnn(cell, in.v).hidden;
  if (detail == Detail::output) return result;
  result.weights = rnn_influence(cell, in.v, false, in.stop);
  if (detail != Detail::steps) return result;
  result.steps = {given("x", "x = V", in.v, MechanismAxis::key),
                  {.id = "w_h",
                   .title = "Wₕ",
                   .formula = said("N(0, gain² ÷ h), drawn"),
                   .value = cell.w_h,
                   .rows = MechanismAxis::dimension,
                   .columns = MechanismAxis::dimension},
                  {.id = "hidden",
                   .title = "h",
                   .formula = "tanh(Wₓ xₜ + Wₕ hₜ₋₁)",
                   .value = result.output,
                   .columns = MechanismAxis::dimension},
                  {.id = "influence",
                   .title = said("Influence"),
                   .formula = said("‖∂hₜ ÷ ∂xₛ‖, exact"),
                   .value = result.weights,
                   .range = MechanismStep::Range::positive,
                   .masked = hidden_cells(*in.rule, in.n(), in.m())}};
  result.curves = {forgetting(in, values, 1)};
  return result;
}

MechanismResult run_lstm_cell(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "lstm");
  const LstmCell cell = lstm_of(in, values, values.number("forget"));
  const CellRun run = run_lstm(cell, in.v);
  MechanismResult result;
  result.kind = MapKind::effective;
  result.output_is_weights_times_v = false;
  result.output = run.hidden;
  if (detail == Detail::output) return result;
  result.weights = lstm_influence(cell, in.v, false, in.stop);
  if (detail != Detail::steps) return result;
  const Index h = in.d_v();
  const auto gate = [&](const char* id, const char* title, const char* formula, Index which,
                        MechanismStep::Range range) {
    return MechanismStep{.id = id,
                         .title = title,
                         .formula = formula,
                         .value = run.gates.slice(1, which * h, (which + 1) * h).packed(),
                         .range = range,
                         .columns = MechanismAxis::dimension};
  };
  using Range = MechanismStep::Range;
  result.steps = {given("x", "x = V", in.v, MechanismAxis::key),
                  gate("input", said("Input gate i"), "σ(Wᵢ xₜ + Uᵢ hₜ₋₁)", 0, Range::probability),
                  gate("forget", said("Forget gate f"), said("σ(W_f xₜ + U_f hₜ₋₁ + bias)"), 1, Range::probability),
                  gate("value", said("Candidate g"), "tanh(W_g xₜ + U_g hₜ₋₁)", 2, Range::signed_values),
                  gate("output", said("Output gate o"), "σ(Wₒ xₜ + Uₒ hₜ₋₁)", 3, Range::probability),
                  {.id = "cell",
                   .title = said("Cell state c"),
                   .formula = "f ⊙ cₜ₋₁ + i ⊙ g",
                   .value = run.cell,
                   .columns = MechanismAxis::dimension},
                  {.id = "hidden",
                   .title = "h",
                   .formula = "o ⊙ tanh(c)",
                   .value = run.hidden,
                   .columns = MechanismAxis::dimension},
                  {.id = "influence",
                   .title = said("Influence"),
                   .formula = said("‖∂hₜ ÷ ∂xₛ‖, exact"),
                   .value = result.weights,
                   .range = Range::positive,
                   .masked = hidden_cells(*in.rule, in.n(), in.m())}};
  result.curves = {forgetting(in, values, values.number("forget"))};
  return result;
}

std::vector<Tensor> rows_of(const Tensor& hidden, const Tensor* cell) {
  std::vector<Tensor> states;
  for (Index t = 0; t < hidden.dim(0); ++t) {
    Tensor state = Tensor::uninitialized({cell ? 2 : 1, hidden.dim(1)});
    for (Index i = 0; i < hidden.dim(1); ++i) {
      state.ref(0, i) = hidden.at(t, i);
      if (cell) state.ref(1, i) = cell->at(t, i);
    }
    states.push_back(std::move(state));
  }
  return states;
}

MechanismParameter gain_parameter() {
  return number_parameter("gain", to_say("Recurrent gain"),
                          to_say("Spread of the weights between states: below 1 the past dies out."), 0, 3, 1);
}

std::string faded(const MechanismResult& result) {
  const Index n = result.weights.defined() ? result.weights.dim(0) : 0;
  if (n < 2) return "";
  const double first = static_cast<double>(result.weights.at(n - 1, 0)),
               last = static_cast<double>(result.weights.at(n - 1, n - 1));
  return say(
      "What the first token still does to the last state is {:.2g} of what the last token does: it passed "
      "through {} states, where attention needs one step.",
      first / std::max(last, 1e-30), n - 1);
}

}  // namespace

Mechanism make_rnn() {
  Mechanism m;
  m.id = "rnn";
  m.title = to_say("A recurrent network (Elman)");
  m.name = to_say("RNN cell");
  m.group = to_say("Recurrent");
  m.source = "Elman 1990; Bengio et al. 1994";
  m.formula = "hₜ = tanh(Wₓ xₜ + Wₕ hₜ₋₁)";
  m.meaning = to_say(
      "Reads the values one after another into one state. What is far back has passed through many states, and fades "
      "or explodes with their product.");
  m.keywords =
      "recurrent vanishing gradient influence complexity RNN Elman neural network information bottleneck gradients "
      "path length maximum sequential operations O(n)";
  m.parameters = {gain_parameter(), seed_parameter(to_say("of the cell's weights"))};
  m.run = run_rnn_cell;
  m.output = [](const MechanismInput& in, const MechanismValues& values) {
    need_causal(in, "rnn");
    return run_rnn(rnn_of(in, values), in.v).hidden;
  };
  m.recurrent = [](const MechanismInput& in, const MechanismValues& values) {
    need_causal(in, "rnn");
    const Tensor hidden = run_rnn(rnn_of(in, values), in.v).hidden;
    return Recurrence{"hₜ = tanh(Wₓ xₜ + Wₕ hₜ₋₁)", "oₜ = hₜ", rows_of(hidden, nullptr), false, hidden};
  };
  m.cost = [](const MechanismShape& s, const MechanismValues&) {
    const auto n = static_cast<double>(s.n), h = static_cast<double>(s.d_v);
    return MechanismCost{2 * n * h * h, h * 4, 0, 4 * (2 * n * h + 2 * h * h)};
  };
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& result) { return faded(result); };
  m.only_recurrent = [](const MechanismValues&) { return true; };
  m.needs_causal = true;
  return m;
}

Mechanism make_lstm() {
  Mechanism m;
  m.id = "lstm";
  m.title = to_say("Long short-term memory: a cell with three gates");
  m.name = to_say("LSTM cell");
  m.group = to_say("Recurrent");
  m.source = "Hochreiter & Schmidhuber 1997; Gers et al. 2000";
  m.formula = "cₜ = f ⊙ cₜ₋₁ + i ⊙ g,   hₜ = o ⊙ tanh(cₜ)";
  m.meaning = to_say(
      "A cell state beside the hidden one is multiplied by a forget gate near 1 instead of by a matrix, so that what "
      "is far back fades slowly.");
  m.keywords = "recurrent gate cell state forget LSTM long short-term memory gates neural network";
  m.parameters = {gain_parameter(),
                  number_parameter("forget", to_say("Forget bias"),
                                   to_say("Added before the forget gate's σ: large keeps the cell open."), -4, 8, 1),
                  seed_parameter(to_say("of the cell's weights"))};
  m.run = run_lstm_cell;
  m.output = [](const MechanismInput& in, const MechanismValues& values) {
    need_causal(in, "lstm");
    return run_lstm(lstm_of(in, values, values.number("forget")), in.v).hidden;
  };
  m.recurrent = [](const MechanismInput& in, const MechanismValues& values) {
    need_causal(in, "lstm");
    const CellRun run = run_lstm(lstm_of(in, values, values.number("forget")), in.v);
    return Recurrence{"cₜ = f ⊙ cₜ₋₁ + i ⊙ g,  hₜ = o ⊙ tanh(cₜ)", said("oₜ = hₜ; states: h, then c"),
                      rows_of(run.hidden, &run.cell), false, run.hidden};
  };
  m.cost = [](const MechanismShape& s, const MechanismValues&) {
    const auto n = static_cast<double>(s.n), h = static_cast<double>(s.d_v);
    return MechanismCost{8 * n * h * h, 2 * h * 4, 0, 4 * (2 * n * h + 8 * h * h)};
  };
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& result) { return faded(result); };
  m.only_recurrent = [](const MechanismValues&) { return true; };
  m.needs_causal = true;
  return m;
}

}  // namespace headscope::mechanism
