// The neural memory of Titans over one head (core/attention/neural_memory.h has the formulas and sources): it learns
// k → v while it reads, by gradient steps with momentum (past surprise) and forgetting, and answers q. Queries and keys
// have length 1, as in the paper. A memory of one matrix is linear in the values, so it has exact effective weights; of
// a deeper one the weights shown are those of the matrix with the same rates. What the head gives is memory's answer
// alone, or (output=joined) memory and attention as context, gate or layer (core/attention/titans_forms.h); the form is
// shown step by step either way, as the paper reads segments, or causally where the head gives it. Shapes: M (d, d_v).
// Cost of the memory alone: 5 n d d_v multiply-adds; state: M and its momentum, 2 d d_v floats.

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/memory_paths.h"
#include "core/attention/memory_recall.h"
#include "core/attention/titans_forms.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

constexpr Index usual_recall_width = 32, parity_count = 512;

bool adapts(const MechanismValues& values) {
  return values.on("adaptive");
}
bool deep(const MechanismValues& values) {
  return values.whole("hidden") > 0;
}
/// Whether the head gives memory and attention joined.
bool joins(const MechanismValues& values) {
  return values.whole("output") == 1;
}
TitansForm form_of(const MechanismValues& values) {
  return static_cast<TitansForm>(values.whole("form"));
}
const char* short_name(TitansForm form) {
  return form == TitansForm::context ? "MAC" : form == TitansForm::gate ? "MAG" : "MAL";
}
/// Whether what is joined is a mixture of the text's values and of nothing else.
bool mixture_alone(const MechanismValues& values) {
  return !deep(values) && (!joins(values) || (form_of(values) == TitansForm::layer && values.whole("persistent") == 0));
}

MemoryRates rates_of(const MechanismValues& values) {
  return {values.number("momentum"),
          values.number("learning"),
          values.number("forgetting"),
          {adapts(values), values.number("surprise-weight"), values.number("fill-weight"),
           values.whole("surprise-span"), values.number("capacity")}};
}
MemoryShape titans_shape(const MechanismValues& values) {
  return {values.whole("hidden"), values.seed(), values.whole("depth")};
}

/// As the paper reads it; or, where the head gives it, so that no later token has a say.
TitansJoined joined_of(const MechanismInput& in, const MechanismValues& values, const TitansKeeps& keeps) {
  const bool causal = joins(values);
  const Tensor k = causal ? in.k.slice(0, 0, 1).packed() : in.k, v = causal ? in.v.slice(0, 0, 1).packed() : in.v;
  return join_memory(form_of(values), in.q, in.k, in.v, in.scale, rates_of(values), titans_shape(values),
                     persistent_tokens(values.whole("persistent"), k, v, values.seed()), values.whole("span"),
                     {static_cast<TitansReading::Context>(values.whole("context-memory")),
                      static_cast<TitansReading::Gating>(values.whole("gating")),
                      causal ? TitansReading::Segments::causal : TitansReading::Segments::whole},
                     keeps);
}

/// Memory and attention joined: what memory recalls, what attention sees and reads, and what comes of both.
void add_joined(std::vector<MechanismStep>& steps, const TitansJoined& joined, const MechanismValues& values) {
  const TitansForm form = form_of(values);
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
  const std::string name = short_name(form);
  add("recalled", say("{}: recalled", name),
      context ? said("M(qᵢ), learnt from the segments before") : said("Mₜ(qₜ), persistent tokens learnt first"),
      joined.recalled, Range::signed_values, dimension);
  const std::string columns = context ? say("{} persistent, {} recalled, {} tokens", joined.mask.persistent,
                                            joined.mask.recalled, joined.mask.tokens)
                                      : say("{} persistent, {} tokens", joined.mask.persistent, joined.mask.tokens);
  add("mask", say("{}: attention", name), say("columns: {}", columns), joined.weights, Range::probability, other,
      joined.mask.hidden);
  add("attended", context || gate ? name + ": y" : say("{}: joined output", name),
      context ? said("attention · (persistent, recalled, V)")
      : gate  ? said("attention · (persistent, V)")
              : said("attention · what memory says"),
      joined.attended, Range::signed_values, dimension);
  if (!joined.gate.defined()) return;
  const bool asks_y = values.whole("context-memory") == 0;
  add("gate", say("{}: gate", name),
      !context ? said("σ(N(recalled))")
      : asks_y ? said("σ(N(M(y))), M taught y → y: eqs 24, 25")
               : said("σ(N(M(q))), M taught k → y"),
      joined.gate, Range::probability, dimension);
  add("joined", say("{}: joined output", name),
      values.whole("gating") == 0 ? said("N(y) ⊙ gate, N(x) = x ÷ rms(x)") : said("σ(N(y)) ⊙ gate, N(x) = x ÷ rms(x)"),
      joined.output, Range::signed_values, dimension);
}

/// Mean length of the rows.
double mean_length(const Tensor& x) {
  double sum = 0;
  for (Index i = 0; i < x.dim(0); ++i) {
    const std::vector<double> row = tensor_row(x, i);
    sum += std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
  }
  return sum / static_cast<double>(std::max<Index>(x.dim(0), 1));
}
double mean_of(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(std::max<std::size_t>(x.size(), 1));
}

MemoryPaths paths_of(const MemoryLessons& lessons, const Tensor& output) {
  MemoryPaths paths;
  paths.tokens = output.dim(0);
  paths.says = paths.output = mean_length(output);
  paths.surprise = mean_of(lessons.surprise);
  paths.forgetting = mean_of(lessons.forgetting);
  return paths;
}

MemoryPaths paths_of(const TitansJoined& joined, const MechanismValues& values) {
  MemoryPaths paths = paths_of(joined.lessons, joined.output);
  const TitansMask& mask = joined.mask;
  paths.form = form_of(values);
  paths.taught_output = values.whole("context-memory") == 0;
  paths.persistent = mask.persistent;
  const Index text = mask.persistent + mask.recalled, last = paths.tokens - 1;
  for (Index i = 0; i < paths.tokens; ++i)
    for (Index c = 0; c < mask.columns(); ++c) {
      double& share = c < mask.persistent ? paths.to_persistent : c < text ? paths.to_recalled : paths.to_tokens;
      share += static_cast<double>(joined.weights.at(i, c)) / static_cast<double>(paths.tokens);
      if (i == last && c >= mask.persistent && !nth(mask.hidden, i * mask.columns() + c))
        ++(c < text ? paths.recalled : paths.seen);
    }
  paths.y = mean_length(joined.attended);
  paths.says = mean_length(joined.recalled);
  if (joined.gate.defined()) {
    double sum = 0;
    for (const float each : joined.gate.packed().values()) sum += static_cast<double>(each);
    paths.gate = sum / static_cast<double>(std::max<Index>(joined.gate.size(), 1));
  }
  return paths;
}

MechanismCurve along_tokens(std::string title, std::string y_title, std::string label, const std::vector<double>& y) {
  MechanismCurve curve{std::move(title), said("token"), std::move(y_title), {{std::move(label), {}, y}}, false, {}};
  for (std::size_t t = 0; t < y.size(); ++t) curve.lines[0].x.push_back(static_cast<double>(t));
  return curve;
}

/// A matrix, one hidden layer and two, taught the same pairs at the same rates.
MechanismCurve recall_curve(const MechanismInput& in, const MechanismValues& values, const std::string& of,
                            const TaughtPairs& pairs) {
  const Index width = deep(values) ? values.whole("hidden") : usual_recall_width;
  const MemoryRates rates{values.number("momentum"), values.number("recall-learning"), 0};
  MechanismCurve curve{
      say("Recall: {}", of),
      said("pairs taught"),
      fmt::format("‖M(k) − v‖² ÷ ‖v‖², θ = {}, η = {}, α = 0", text(rates.learning), text(rates.momentum)),
      {},
      pairs.k.dim(0) > 32,
      {}};
  curve.from_zero = true;
  for (const MemoryShape& shape :
       {MemoryShape{}, MemoryShape{width, values.seed(), 1}, MemoryShape{width, values.seed(), 2}}) {
    const RecallCurve found = recall_while_learning(pairs.k, pairs.v, rates, shape, in.stop);
    std::string label = shape.hidden == 0 ? said("one matrix") : say("{} hidden × {}", shape.depth, width);
    if (found.lost_at > 0) label += say(", beyond {} at {}", text(most_recall_error), found.lost_at);
    curve.lines.push_back({std::move(label), found.pairs, found.error});
  }
  return curve;
}

void add_curves(MechanismResult& result, const MechanismInput& in, const MechanismValues& values,
                const MemoryLessons& lessons) {
  result.curves.push_back(
      along_tokens(said("Surprise of each token"), said("‖∇ loss‖"), said("surprise"), lessons.surprise));
  if (adapts(values)) {
    MechanismCurve forgetting = along_tokens(said("Forgetting of each token"), "αₜ", "αₜ", lessons.forgetting);
    forgetting.lines.push_back({said("α as set"), forgetting.lines[0].x,
                                std::vector<double>(lessons.forgetting.size(), values.number("forgetting"))});
    forgetting.lines.back().level = true;
    forgetting.from_zero = true;
    result.curves.push_back(std::move(forgetting));
    result.curves.push_back(along_tokens(said("How much the memory holds"), "‖Mₜ‖", "‖Mₜ‖", lessons.size));
    result.curves.back().from_zero = true;
  }
  if (!values.on("recall")) return;
  result.curves.push_back(recall_curve(in, values, said("these pairs"), {unit_rows(in.k), in.v}));
  result.curves.push_back(recall_curve(in, values, said("parity"), parity_pairs(parity_count, values.seed())));
}

/// Of every mechanism here: what the token changes, and what comes of it.
void add_lessons(std::vector<MechanismStep>& steps, const MemoryLessons& lessons, const std::string& taught) {
  const auto column = [](const std::vector<double>& numbers) {
    Tensor out = Tensor::uninitialized({static_cast<Index>(numbers.size()), 1});
    for (Index t = 0; t < out.dim(0); ++t) out.ref(t, 0) = static_cast<float>(nth(numbers, t));
    return out;
  };
  steps.push_back({.id = "loss",
                   .title = said("Loss"),
                   .formula = say("‖M({})‖² before the token is learnt", taught),
                   .value = column(lessons.loss),
                   .range = MechanismStep::Range::positive,
                   .columns = MechanismAxis::other});
  steps.push_back({.id = "surprise",
                   .title = said("Surprise"),
                   .formula = said("‖∇ loss‖: what the token changes"),
                   .value = column(lessons.surprise),
                   .range = MechanismStep::Range::positive,
                   .columns = MechanismAxis::other});
}

std::string taught_words(const MechanismValues& values) {
  if (!joins(values) || form_of(values) != TitansForm::context) return "kₜ) − vₜ";
  return values.whole("context-memory") == 0 ? "yₜ) − yₜ" : "kₜ) − yₜ";
}

std::string weights_words(const MechanismValues& values) {
  if (!joins(values))
    return deep(values) ? said("of a memory of one matrix with these rates") : said("output = weights · V, exactly");
  const std::string what = form_of(values) == TitansForm::layer ? said("output") : said("y, before the gate,");
  if (deep(values)) return say("of {} were the memory one matrix", what);
  return values.whole("persistent") > 0 ? say("{} = weights · V + what persistent tokens give", what)
                                        : say("{} = weights · V, exactly", what);
}

std::string output_words(const MechanismValues& values) {
  if (!joins(values)) return "Mₜ(qₜ)";
  if (form_of(values) == TitansForm::layer) return said("Σ weight · Mₛ(qₛ)");
  const std::string y = values.whole("gating") == 0 ? "N(yₜ)" : "σ(N(yₜ))";
  const bool asks_y = form_of(values) == TitansForm::context && values.whole("context-memory") == 0;
  return y + " ⊙ σ(N(Mₜ(" + (asks_y ? "yₜ" : "qₜ") + ")))";
}

MechanismResult run_titans(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "titans");
  const bool steps = detail == Detail::steps;
  const Tensor q = unit_rows(in.q), k = unit_rows(in.k);
  MechanismResult result;
  result.kind = MapKind::effective;
  result.output_is_weights_times_v = mixture_alone(values);
  std::optional<TitansJoined> joined;
  MemoryLessons lessons;
  if (joins(values)) {
    joined = joined_of(in, values, {.mixed = detail != Detail::output, .stop = in.stop});
    result.output = joined->output, result.weights = joined->mixed;
    lessons = joined->lessons;
  } else {
    MemoryRun memory = run_memory(q, k, in.v, rates_of(values), titans_shape(values));
    result.output = memory.output;
    lessons = std::move(memory);
    if (detail != Detail::output)
      result.weights =
          memory_weights(q, k, rates_of(values), adapts(values) ? lessons.forgetting : std::vector<double>{});
    if (steps) joined = joined_of(in, values, {.stop = in.stop});
  }
  if (detail == Detail::output) return result;
  check(in);
  if (result.output_is_weights_times_v) result.output = product(result.weights, in.v);  // the parallel form
  if (!steps) return result;
  add_inputs(result.steps, in);
  add_lessons(result.steps, lessons, taught_words(values));
  result.steps.push_back({.id = "weights",
                          .title = said("Effective weights"),
                          .formula = weights_words(values),
                          .value = result.weights,
                          .masked = hidden_cells(*in.rule, in.n(), in.m())});
  result.steps.push_back({.id = "output",
                          .title = said("Output"),
                          .formula = output_words(values),
                          .value = result.output,
                          .columns = MechanismAxis::dimension});
  add_joined(result.steps, *joined, values);
  const MemoryPaths paths = joins(values) ? paths_of(*joined, values) : paths_of(lessons, result.output);
  if (joins(values)) {
    const std::string name = short_name(form_of(values));
    result.facts.push_back({say("{}: attention", name),
                            say("{:.3f} persistent, {:.3f} {}", paths.to_persistent,
                                paths.to_recalled > 0 ? paths.to_recalled : paths.to_tokens,
                                paths.to_recalled > 0 ? say("recalled, {:.3f} tokens of the segment", paths.to_tokens)
                                                      : said("tokens in the window")),
                            said("mean over the tokens of the weight that each kind gets")});
    if (joined->gate.defined())
      result.facts.push_back(
          {say("{}: mean gate", name), fmt::format("{:.3f}", paths.gate), said("of all its numbers")});
  }
  result.memory = std::make_shared<const MemoryPaths>(paths);
  add_curves(result, in, values, lessons);
  return result;
}

Recurrence recurrent_titans(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "titans");
  Recurrence result;
  if (joins(values)) {
    TitansJoined joined = joined_of(in, values, {.states = true, .stop = in.stop});
    result = {"", "oₜ = " + output_words(values), std::move(joined.states), false, joined.output};
  } else {
    MemoryRun memory = run_memory(unit_rows(in.q), unit_rows(in.k), in.v, rates_of(values), titans_shape(values), true);
    result = {"", deep(values) ? "oₜ = Mₜ(qₜ)" : "oₜ = Mₜ qₜ", std::move(memory.states), false, memory.output};
  }
  result.update = fmt::format("Mₜ = (1 − {}) Mₜ₋₁ + η Sₜ₋₁ − θ ∇", adapts(values) ? "αₜ" : "α");
  if (result.states.empty()) {  // the weights of a deep memory are no picture; what it answers is
    result.readout += said("; states: what it answers");
    for (Index t = 0; t < in.n(); ++t) result.states.push_back(result.output.slice(0, t, t + 1).packed());
  }
  return result;
}

/// Memory: forward, back to the layer before (of deep ones), gradient, momentum, weights, and an answer. Attention:
/// each token over what its mask leaves it. The gate: two lengths and a product.
MechanismCost cost_of_titans(const MechanismShape& s, const MechanismValues& values) {
  const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d), d_v = static_cast<double>(s.d_v);
  const MemoryShape shape = titans_shape(values);
  const auto size = static_cast<double>(memory_numbers(s.d, s.d_v, shape));
  const double first = deep(values) ? static_cast<double>(shape.hidden) * d : size;
  const double learns = 4 * size + (size - first), answers = size;
  MechanismCost cost{n * (learns + answers), 2 * size * 4, 0, 4 * 2 * n * (d + d_v)};
  if (!joins(values)) return cost;
  const TitansForm form = form_of(values);
  const double persistent = values.number("persistent"), span = std::min(values.number("span"), n);
  const bool context = form == TitansForm::context;
  const double seen = persistent + (context ? 2 : 1) * span;
  cost.multiply_adds += n * seen * (d + d_v);
  cost.multiply_adds += context ? n * answers : persistent * (learns + answers);
  if (form != TitansForm::layer) cost.multiply_adds += 3 * n * d_v;
  // What was recalled stands under the keys of the segment.
  cost.cache_bytes = 4 * ((persistent + span) * (d + d_v) + (context ? span * d_v : 0));
  cost.moved_bytes += 4 * persistent * (d + d_v);
  return cost;
}

std::string note_on_titans(const MechanismInput&, const MechanismValues& v, const MechanismResult&) {
  if (joins(v)) {
    const std::string persistent =
        v.whole("persistent") > 0 ? said(" Persistent tokens have a say that no weight of the text shows.") : "";
    switch (form_of(v)) {
      case TitansForm::context:
        return said(
                   "The output is gated, number by number: no weights give it. Those shown are of y, with what came by "
                   "way of memory.") +
               persistent;
      case TitansForm::gate:
        return said(
                   "The output is gated, number by number: no weights give it. Those shown are attention's own; memory "
                   "can only hold back or let through what the window holds.") +
               persistent;
      case TitansForm::layer:
        return std::string(deep(v)
                               ? said("A deep memory is no mixture of values: the weights are those of one matrix.")
                               : said("What lies before the window reaches the output by way of memory, with its own "
                                      "weight here.")) +
               persistent;
    }
  }
  return v.number("momentum") == 0 && v.number("forgetting") == 0 && !deep(v)
             ? said("Without momentum and forgetting this is the delta rule with β = 2θ.")
             : said(
                   "A token that the memory predicts badly stands out in the surprise, and in the columns of the "
                   "weights after it.");
}

std::vector<MechanismParameter> titans_parameters() {
  const auto where_adaptive = [](MechanismParameter p) {
    return only_where(std::move(p), [](const MechanismValues& v, const MechanismShape&) { return adapts(v); });
  };
  return {
      number_parameter("learning", to_say("Learning rate θ"), to_say("What the momentary surprise counts."), 0.01, 0.5,
                       0.2, true),
      number_parameter("momentum", to_say("Momentum η"), to_say("What is left of the past surprise."), 0, 0.95, 0.3),
      number_parameter("forgetting", to_say("Forgetting α"), to_say("What is lost of the memory at each token."), 0, 1,
                       0.02),
      toggle_parameter(
          "adaptive", to_say("Adaptive forgetting"),
          to_say("α follows how surprising the token is and how full the memory: σ(logit α + a ρ + b (f − 1)). "
                 "Of α = 0 or 1 nothing changes."),
          false),
      where_adaptive(number_parameter("surprise-weight", to_say("a: of surprise ρ"),
                                      to_say("ρ = (s − s̄) ÷ (s + s̄): a token against the running mean."), 0, 20, 8)),
      where_adaptive(number_parameter("fill-weight", to_say("b: of fill f"),
                                      to_say("f = ‖M‖ ÷ (√capacity · usual ‖v‖)."), 0, 20, 1)),
      where_adaptive(whole_parameter("surprise-span", to_say("Running mean over"),
                                     to_say("Tokens that s̄ is the mean of, about."), 1, 64, 8)),
      where_adaptive(whole_parameter("capacity", to_say("Capacity, pairs"),
                                     to_say("Full (f = 1): as many values under orthogonal keys."), 1, 256, 8, true)),
      whole_parameter("hidden", to_say("Hidden width"),
                      to_say("0: the memory is one matrix; else two with tanh between."), 0, 64, 0),
      only_where(whole_parameter("depth", to_say("Hidden layers"), to_say("Of so many numbers each, tanh after each."),
                                 1, 4, 1),
                 [](const MechanismValues& v, const MechanismShape&) { return deep(v); }),
      choice_parameter("form", to_say("Joined to attention"),
                       to_say("As context (MAC), gate (MAG) or layer (MAL): the last steps."),
                       {to_say("context"), to_say("gate"), to_say("layer")}),
      choice_parameter(
          "output", to_say("Output"),
          to_say("What the head gives, here and in the model: memory's answer alone, or memory and attention "
                 "joined."),
          {to_say("memory"), to_say("joined")}),
      whole_parameter("persistent", to_say("Persistent tokens"),
                      to_say("In front of every text; the paper learns them, here they are drawn."), 0, 16, 2),
      whole_parameter("span", to_say("Attention span"),
                      to_say("Tokens that attention itself sees: a segment, or a window."), 1, 64, 4),
      only_where(
          choice_parameter(
              "context-memory", to_say("MAC's memory"),
              to_say("Is taught y and asked with y, as in eqs 24 and 25; or taught the tokens' keys, asked with their "
                     "queries."),
              {"y", to_say("token")}),
          [](const MechanismValues& v, const MechanismShape&) { return v.whole("form") == 0; }),
      only_where(choice_parameter("gating", to_say("Gating ⊗"),
                                  to_say("σ of memory's answer alone, N(y) ⊙ σ(N(M)), or of both."),
                                  {to_say("memory"), to_say("both")}),
                 [](const MechanismValues& v, const MechanismShape&) { return v.whole("form") < 2; }),
      toggle_parameter(
          "recall", to_say("Deep against linear"),
          to_say("Curves: the error, of all pairs taught so far, of one matrix, one hidden layer and two: on this "
                 "page's pairs, and on 512 of a parity, v = 8 k₁k₂k₃ of signs kᵢ = ± ½."),
          false),
      only_where(number_parameter("recall-learning", to_say("θ of these curves"),
                                  to_say("The same for all three; α is 0."), 0.001, 0.2, 0.02, true),
                 [](const MechanismValues& v, const MechanismShape&) { return v.on("recall"); }),
      only_where(seed_parameter(to_say("of persistent tokens, a deep memory's first weights and the pairs of signs")),
                 [](const MechanismValues& v, const MechanismShape&) {
                   return v.whole("persistent") > 0 || v.whole("hidden") > 0 || v.on("recall");
                 })};
}

}  // namespace

Mechanism make_titans() {
  Mechanism m;
  m.id = "titans";
  m.title = to_say("Titans: a memory that learns while it reads");
  m.name = to_say("Titans (neural memory)");
  m.group = to_say("Recurrent");
  m.source = "Behrouz et al. 2024";
  m.formula = "Sₜ = η Sₜ₋₁ − θ ∇‖M(kₜ) − vₜ‖²,   Mₜ = (1 − α) Mₜ₋₁ + Sₜ,   oₜ = Mₜ(qₜ)";
  m.meaning = to_say(
      "The state is a network trained on the text itself: what surprises it changes it, past surprise carries on as "
      "momentum, and α forgets. Attention joins it as context, gate or layer, here and in the model.");
  m.keywords =
      "neural memory surprise momentum adaptive forgetting weight decay of memory deep memory MAC MAG MAL memory as "
      "context as gate as layer test time training long-term persistent memory tokens test-time memorization";
  m.ours = to_say(
      "η and θ are learnt maps of the token in the paper; here they are sliders, and α is one too or a stated function "
      "of surprise and fill. Norms have no gains, projections of y are the identity, persistent tokens are drawn, what "
      "MAC recalls stands under the token's own key. Output joined: persistent tokens are as large as the first "
      "token, and a segment of MAC is read token by token, so that no later token has a say.");
  m.only_recurrent = [](const MechanismValues& v) { return !mixture_alone(v); };
  m.parameters = titans_parameters();
  m.run = run_titans;
  m.output = [](const MechanismInput& in, const MechanismValues& values) {
    return run_titans(in, values, Detail::output).output;
  };
  m.recurrent = recurrent_titans;
  m.cost = cost_of_titans;
  m.note = note_on_titans;
  m.needs_causal = true;
  return m;
}

}  // namespace headscope::mechanism
