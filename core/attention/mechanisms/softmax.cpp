// Scaled dot-product attention (Vaswani et al., Attention Is All You Need, 2017), step by step.
//   S = Q Kᵀ ÷ √d,  P = softmax of each row of S over the keys that the mask leaves,  O = P V.
// Shapes: Q (n, d), K (m, d), V (m, d_v), S and P (n, m), O (n, d_v). Cost: n m (d + d_v) multiply-adds, and n² numbers
// stored where the steps are kept.

#include "core/attention/mechanisms/softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/special_values.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// What q·k is multiplied by at the mechanism's own temperature 1.
float unit_of(const MechanismInput& in, const MechanismValues& values) {
  return values.on("scaled") ? in.scale : 1 / in.temperature;
}

float factor_of(const MechanismInput& in, const MechanismValues& values) {
  return static_cast<float>(static_cast<double>(unit_of(in, values)) / values.number("temperature"));
}

MechanismResult run_softmax(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const float factor = factor_of(in, values);
  std::vector<MechanismStep> steps;
  const Tensor dots = product_t(in.q, in.k);
  Tensor scores = times(dots, factor);
  if (detail == Detail::steps) {
    add_inputs(steps, in);
    steps.push_back({.id = "dots",
                     .title = "Q Kᵀ",
                     .formula = said("how far each query agrees with each key"),
                     .value = dots,
                     .explain = explain_product_t(in.q, in.k)});
    steps.push_back({.id = "scores",
                     .title = said("Scores"),
                     .formula = values.on("scaled") ? scores_text(in) + " ÷ τ" : said("Q Kᵀ ÷ τ, not scaled"),
                     .value = scores,
                     .explain = [dots, factor](Index i, Index j) {
                       return fmt::format("{} · {} = {}", text(factor), text(dots.at(i, j)),
                                          text(factor * dots.at(i, j)));
                     }});
  }
  MechanismResult result = softmax_of(in, scores.copy(), std::move(steps), detail);
  if (detail == Detail::steps) {
    MechanismCurve curve{
        said("Entropy of the rows over temperature"), "τ", said("mean entropy, nats"), {{"", {}, {}}}, true, {}};
    const Tensor unit = times(dots, unit_of(in, values));
    for (int i = 0; i <= 24; ++i) {
      const double tau = 0.05 * std::pow(400.0, i / 24.0);
      Tensor s = times(unit, static_cast<float>(1 / tau));
      apply_rule(*in.rule, s);
      curve.lines[0].x.push_back(tau);
      curve.lines[0].y.push_back(mean_entropy(softmax_rows(std::move(s), in.rule.get())));
      check(in);
    }
    curve.marker = {values.number("temperature"), mean_entropy(result.weights)};
    result.curves.push_back(std::move(curve));
  }
  return result;
}

/// By blocks of rows over the keys that they see: n × n numbers are never stored.
Tensor softmax_output(const MechanismInput& in, const MechanismValues& values) {
  constexpr Index block = 64;
  Tensor out = Tensor::zeros({in.n(), in.d_v()});
  for (Index begin = 0; begin < in.n(); begin += block) {
    check(in);
    const Index end = std::min(begin + block, in.n());
    Index reach = 0;
    for (Index i = begin; i < end; ++i) reach = std::max(reach, in.rule->keys(i, in.m()).end);
    if (reach == 0) continue;
    Tensor scores = times(product_t(in.q.slice(0, begin, end), in.k.slice(0, 0, reach)), factor_of(in, values));
    for (Index i = begin; i < end; ++i) {
      const KeyRange keys = in.rule->keys(i, in.m());
      float* const row = &scores.ref(i - begin, 0);
      std::fill(row, row + std::min(keys.begin, reach), -float_infinity);
      std::fill(row + std::max(keys.end, keys.begin), row + reach, -float_infinity);
      if (!in.rule->plain() && keys.size() > 0)
        in.rule->apply(i, keys.begin, {row + keys.begin, static_cast<std::size_t>(keys.size())});
    }
    const Tensor part = product(softmax_rows(std::move(scores), in.rule.get(), begin), in.v.slice(0, 0, reach));
    for (Index i = begin; i < end; ++i) std::copy_n(part.data() + (i - begin) * in.d_v(), in.d_v(), &out.ref(i, 0));
  }
  return out;
}

std::string note(const MechanismInput& in, const MechanismValues& values, const MechanismResult&) {
  if (!values.on("scaled"))
    return say(
        "Not divided by √{}: scores are {} times as far apart, so rows come close to one-hot, where the "
        "gradient of softmax is 0.",
        in.d(), text(1 / static_cast<double>(in.scale)));
  if (values.number("temperature") < 1)
    return said("Below temperature 1 each row moves its weight to its largest score.");
  if (values.number("temperature") > 1)
    return said("Above temperature 1 the weights of a row draw nearer to one another.");
  return said("This is the reference itself: difference and error are 0.");
}

}  // namespace

MechanismResult softmax_of(const MechanismInput& in, Tensor scores, std::vector<MechanismStep> score_steps,
                           Detail detail) {
  check(in);
  apply_rule(*in.rule, scores);
  MechanismResult result;
  result.weights = softmax_rows(scores.copy(), in.rule.get());
  result.output = product(result.weights, in.v);
  if (detail != Detail::steps) return result;
  result.steps = std::move(score_steps);
  auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  // Scores of cells that the mask hides are computed, but nothing comes of them: they are no part of any picture.
  for (MechanismStep& step : result.steps)
    if (step.rows == MechanismAxis::query && step.columns == MechanismAxis::key) step.masked = hidden;
  Tensor allowed = scores.copy(), exponentials = scores.copy();
  Tensor sums = Tensor::zeros({in.n(), 1}), largest = Tensor::zeros({in.n(), 1}), logs = scores.copy();
  for (Index i = 0; i < in.n(); ++i) {
    const float sink = in.rule->sink(i);
    float max = sink;
    for (Index j = 0; j < in.m(); ++j) max = std::max(max, scores.at(i, j));
    largest.ref(i, 0) = std::isfinite(max) ? max : 0;
    double sum = std::isfinite(sink) ? std::exp(static_cast<double>(sink) - static_cast<double>(max)) : 0;
    for (Index j = 0; j < in.m(); ++j) {
      const float s = scores.at(i, j);
      if (s == -float_infinity) allowed.ref(i, j) = 0;
      sum += static_cast<double>(exponentials.ref(i, j) = s == -float_infinity ? 0.0f : std::exp(s - max));
    }
    sums.ref(i, 0) = static_cast<float>(sum);
    for (Index j = 0; j < in.m(); ++j) {
      const float s = scores.at(i, j);
      logs.ref(i, j) = s == -float_infinity ? 0.0f : s - max - static_cast<float>(std::log(sum));
    }
  }
  result.steps.push_back({.id = "masked",
                          .title = said("Masked scores"),
                          .formula = say("mask: {}", in.rule->describe()),
                          .value = allowed,
                          .masked = hidden});
  result.steps.push_back({.id = "exp",
                          .title = "exp(s − max)",
                          .formula = said("the row's largest taken off first: no overflow"),
                          .value = exponentials,
                          .range = MechanismStep::Range::probability,
                          .masked = hidden,
                          .explain = [scores, largest, exponentials](Index i, Index j) {
                            return fmt::format("exp({} − {}) = {}", text(scores.at(i, j)), text(largest.at(i, 0)),
                                               text(exponentials.at(i, j)));
                          }});
  result.steps.push_back({.id = "weights",
                          .title = said("Weights P"),
                          .formula = said("each row ÷ its sum"),
                          .value = result.weights,
                          .range = MechanismStep::Range::probability,
                          .masked = hidden,
                          .explain = [exponentials, sums, p = result.weights](Index i, Index j) {
                            return fmt::format("{} ÷ {} = {}", text(exponentials.at(i, j)), text(sums.at(i, 0)),
                                               text(p.at(i, j)));
                          }});
  result.steps.push_back({.id = "log",
                          .title = "ln P",
                          .formula = said("s − max − ln Σ: a weight that rounds to 0 keeps its logarithm"),
                          .value = logs,
                          .masked = std::move(hidden),
                          .explain = [scores, largest, sums, logs](Index i, Index j) {
                            return say("{} − {} − ln {} = {}", text(scores.at(i, j)), text(largest.at(i, 0)),
                                       text(sums.at(i, 0)), text(logs.at(i, j)));
                          }});
  result.steps.push_back(output_step(result.weights, in.v, result.output, "P V"));
  return result;
}

MechanismResult softmax_reference(const MechanismInput& in) {
  return softmax_of(in, raw_scores(in), {}, Detail::weights);
}

std::vector<ShapeChip> softmax_chips(const MechanismShape& s, const std::string& score) {
  using Role = ShapeChip::Role;
  return {chip(Role::query, "Q", s.rows(), s.d), chip(Role::key, score, s.rows(), s.n),
          chip(Role::plain, "softmax", s.rows(), s.n), chip(Role::value, "· V", s.n, s.d_v),
          chip(Role::output, "O", s.rows(), s.d_v)};
}

Mechanism make_softmax() {
  Mechanism m;
  m.id = "softmax";
  m.title = to_say("Scaled dot-product attention");
  m.name = to_say("Scaled dot-product");
  m.group = to_say("Exact softmax");
  m.source = "Vaswani et al. 2017";
  m.formula = "O = softmax(Q Kᵀ ÷ √d) V";
  m.meaning = to_say(
      "Each query is compared with every key; softmax turns a row of scores into shares that sum to 1; the output is "
      "the values mixed in these shares.");
  m.keywords =
      "temperature unscaled multiplicative sqrt d log-softmax stable SDPA dot-product QKV query key value "
      "self-attention scores weights Transformer softmax";
  m.parameters = {number_parameter("temperature", to_say("Temperature τ"),
                                   to_say("Scores are divided by it: below 1 sharper."), 0.05, 20, 1, true),
                  toggle_parameter("scaled", "÷ √d", to_say("Off: the scores as they are, unscaled."), true)};
  m.run = run_softmax;
  m.score_edits = ScoreEdits::all;
  m.knows_sinks = true;
  m.output = softmax_output;
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return plain_cost(s); };
  m.chips = [](const MechanismShape& s, const MechanismValues&) { return softmax_chips(s, "· Kᵀ"); };
  m.note = note;
  return m;
}

}  // namespace headscope::mechanism
