// The neural memory of Titans over one head (core/attention/neural_memory.h has the formulas and sources): it learns
// k → v while it reads, by gradient steps with momentum (past surprise) and forgetting, and answers q. Queries and keys
// have length 1, as in the paper. A memory of one matrix is linear in the values, so it has exact effective weights; of
// a deeper one the weights shown are those of the matrix with the same rates. The output is the memory's alone; joined
// with attention as context, gate or layer (core/attention/titans_forms.h) it is shown step by step, the weights of
// attention under their mask. Shapes: M (d, d_v). Cost: 5 n d d_v multiply-adds; state: M and its momentum, 2 d d_v
// floats.

#include <fmt/format.h>

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/titans_forms.h"
#include "core/base/nth.h"

namespace headscope::mechanism {

namespace {

MemoryRates rates_of(const MechanismValues& values) {
  return {values.number("momentum"), values.number("learning"), values.number("forgetting")};
}
MemoryShape titans_shape(const MechanismValues& values) {
  return {values.whole("hidden"), values.seed()};
}

/// Memory and attention joined: what memory recalls, what attention sees and reads, and what comes of both.
void add_joined(std::vector<MechanismStep>& steps, const MechanismInput& in, const MechanismValues& values) {
  const auto form = static_cast<TitansForm>(values.whole("form"));
  const TitansJoined joined =
      join_memory(form, in.q, in.k, in.v, in.scale, rates_of(values), titans_shape(values),
                  persistent_tokens(values.whole("persistent"), in.k, in.v, values.seed()), values.whole("span"),
                  {static_cast<TitansReading::Context>(values.whole("context-memory")),
                   static_cast<TitansReading::Gating>(values.whole("gating"))});
  using Range = MechanismStep::Range;
  using enum MechanismAxis;
  const auto add = [&](const char* id, std::string title, std::string formula, const Tensor& value, Range range,
                       MechanismAxis columns, std::vector<std::uint8_t> masked = {}) {
    steps.push_back({.id = id,
                     .title = std::move(title),
                     .formula = std::move(formula),
                     .value = value,
                     .range = range,
                     .columns = columns,
                     .masked = std::move(masked)});
  };
  const bool context = form == TitansForm::context, gate = form == TitansForm::gate;
  const std::string name = context ? "MAC" : gate ? "MAG" : "MAL";
  add("recalled", name + ": recalled",
      context ? "M(qᵢ), learnt from the segments before" : "Mₜ(qₜ), persistent tokens learnt first", joined.recalled,
      Range::signed_values, dimension);
  const std::string columns = context
                                  ? fmt::format("{} persistent, {} recalled, {} tokens", joined.mask.persistent,
                                                joined.mask.recalled, joined.mask.tokens)
                                  : fmt::format("{} persistent, {} tokens", joined.mask.persistent, joined.mask.tokens);
  add("mask", name + ": attention", "columns: " + columns, joined.weights, Range::probability, other,
      joined.mask.hidden);
  add("attended", name + (context || gate ? ": y" : ": joined output"),
      context ? "attention · (persistent, recalled, V)"
      : gate  ? "attention · (persistent, V)"
              : "attention · what memory says",
      joined.attended, Range::signed_values, dimension);
  if (!joined.gate.defined()) return;
  const bool asks_y = values.whole("context-memory") == 0;
  add("gate", name + ": gate",
      !context ? "σ(N(recalled))"
      : asks_y ? "σ(N(M(y))), M taught y → y: eqs 24, 25"
               : "σ(N(M(q))), M taught k → y",
      joined.gate, Range::probability, dimension);
  add("joined", name + ": joined output",
      values.whole("gating") == 0 ? "N(y) ⊙ gate, N(x) = x ÷ rms(x)" : "σ(N(y)) ⊙ gate, N(x) = x ÷ rms(x)",
      joined.output, Range::signed_values, dimension);
}

MechanismResult run_titans(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "titans");
  const Tensor q = unit_rows(in.q), k = unit_rows(in.k);
  const bool deep = titans_shape(values).hidden > 0;
  const MemoryRun memory = run_memory(q, k, in.v, rates_of(values), titans_shape(values));
  MechanismResult result;
  result.kind = MapKind::effective;
  result.output = memory.output;
  result.output_is_weights_times_v = !deep;
  if (detail == Detail::output) return result;
  check(in);
  result.weights = memory_weights(q, k, rates_of(values));
  if (!deep) result.output = product(result.weights, in.v);  // the parallel form
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  const auto column = [&](const std::vector<double>& numbers) {
    Tensor out = Tensor::uninitialized({in.n(), 1});
    for (Index t = 0; t < in.n(); ++t) out.ref(t, 0) = static_cast<float>(nth(numbers, t));
    return out;
  };
  result.steps.push_back({.id = "loss",
                          .title = "Loss",
                          .formula = "‖M(kₜ) − vₜ‖² before the token is learnt",
                          .value = column(memory.loss),
                          .range = MechanismStep::Range::positive,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "surprise",
                          .title = "Surprise",
                          .formula = "‖∇ loss‖: what the token changes",
                          .value = column(memory.surprise),
                          .range = MechanismStep::Range::positive,
                          .columns = MechanismAxis::other});
  result.steps.push_back(
      {.id = "weights",
       .title = "Effective weights",
       .formula = deep ? "of a memory of one matrix with these rates" : "output = weights · V, exactly",
       .value = result.weights,
       .masked = hidden_cells(*in.rule, in.n(), in.m())});
  result.steps.push_back({.id = "output",
                          .title = "Output",
                          .formula = "Mₜ(qₜ)",
                          .value = result.output,
                          .columns = MechanismAxis::dimension});
  add_joined(result.steps, in, values);
  MechanismCurve curve{"Surprise of each token", "token", "‖∇ loss‖", {{"surprise", {}, memory.surprise}}, false, {}};
  for (Index t = 0; t < in.n(); ++t) curve.lines[0].x.push_back(static_cast<double>(t));
  result.curves = {std::move(curve)};
  return result;
}

}  // namespace

Mechanism make_titans() {
  Mechanism m;
  m.id = "titans";
  m.title = "Titans: a memory that learns while it reads";
  m.name = "Titans (neural memory)";
  m.group = "Recurrent";
  m.source = "Behrouz et al. 2024";
  m.formula = "Sₜ = η Sₜ₋₁ − θ ∇‖M(kₜ) − vₜ‖²,   Mₜ = (1 − α) Mₜ₋₁ + Sₜ,   oₜ = Mₜ(qₜ)";
  m.meaning =
      "The state is a network trained on the text itself: what surprises it changes it, past surprise carries on as "
      "momentum, and α forgets. Attention joins it as context, gate or layer.";
  m.keywords =
      "neural memory surprise momentum forgetting MAC MAG MAL test time training as context as gate as layer long-term "
      "persistent test-time memorization";
  m.ours =
      "η, θ and α are learnt maps of the token in the paper; here they are sliders. Norms have no gains, projections "
      "of y "
      "are the identity, persistent tokens are drawn, what MAC recalls stands under the token's own key.";
  m.only_recurrent = [](const MechanismValues& v) { return v.whole("hidden") > 0; };
  m.parameters = {
      number_parameter("learning", "Learning rate θ", "What the momentary surprise counts.", 0.01, 0.5, 0.2, true),
      number_parameter("momentum", "Momentum η", "What is left of the past surprise.", 0, 0.95, 0.3),
      number_parameter("forgetting", "Forgetting α", "What is lost of the memory at each token.", 0, 1, 0.02),
      whole_parameter("hidden", "Hidden width", "0: the memory is one matrix; else two with tanh between.", 0, 64, 0),
      choice_parameter("form", "Joined to attention", "As context (MAC), gate (MAG) or layer (MAL): the last steps.",
                       {"context", "gate", "layer"}),
      whole_parameter("persistent", "Persistent tokens",
                      "In front of every text; the paper learns them, here they are drawn.", 0, 16, 2),
      whole_parameter("span", "Attention span", "Tokens that attention itself sees: a segment, or a window.", 1, 64, 4),
      only_where(choice_parameter(
                     "context-memory", "MAC's memory",
                     "Is taught y and asked with y, as in eqs 24 and 25; or taught the tokens' keys, asked with their "
                     "queries.",
                     {"y", "token"}),
                 [](const MechanismValues& v, const MechanismShape&) { return v.whole("form") == 0; }),
      only_where(choice_parameter("gating", "Gating ⊗", "σ of memory's answer alone, N(y) ⊙ σ(N(M)), or of both.",
                                  {"memory", "both"}),
                 [](const MechanismValues& v, const MechanismShape&) { return v.whole("form") < 2; }),
      only_where(seed_parameter("of persistent tokens and a deep memory's first weights"),
                 [](const MechanismValues& v, const MechanismShape&) {
                   return v.whole("persistent") > 0 || v.whole("hidden") > 0;
                 })};
  m.run = run_titans;
  m.output = [](const MechanismInput& in, const MechanismValues& values) {
    need_causal(in, "titans");
    return run_memory(unit_rows(in.q), unit_rows(in.k), in.v, rates_of(values), titans_shape(values)).output;
  };
  m.recurrent = [](const MechanismInput& in, const MechanismValues& values) {
    need_causal(in, "titans");
    MemoryRun memory = run_memory(unit_rows(in.q), unit_rows(in.k), in.v, rates_of(values), titans_shape(values), true);
    Recurrence result{"Mₜ = (1 − α) Mₜ₋₁ + η Sₜ₋₁ − θ ∇", "oₜ = Mₜ qₜ", std::move(memory.states), false, memory.output};
    if (result.states.empty()) {  // the weights of a deep memory are no picture; what it answers is
      result.readout = "oₜ = Mₜ(qₜ); states: what it answers";
      for (Index t = 0; t < in.n(); ++t) result.states.push_back(memory.output.slice(0, t, t + 1).packed());
    }
    return result;
  };
  m.cost = [](const MechanismShape& s, const MechanismValues&) {
    const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d), d_v = static_cast<double>(s.d_v);
    return MechanismCost{5 * n * d * d_v, 2 * d * d_v * 4, 0, 4 * 2 * n * (d + d_v)};
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) -> std::string {
    return v.number("momentum") == 0 && v.number("forgetting") == 0
               ? "Without momentum and forgetting this is the delta rule with β = 2θ."
               : "A token that the memory predicts badly stands out in the surprise, and in the columns of the weights "
                 "after it.";
  };
  m.needs_causal = true;
  return m;
}

}  // namespace headscope::mechanism
