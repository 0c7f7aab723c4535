// Linformer (Wang et al., Linformer: Self-Attention with Linear Complexity, 2020): keys and values are projected along
// the text, from m to r rows, before softmax attention: O = softmax(Q (E K)ᵀ ÷ √d) (F V). The effective weights of the
// original positions are softmax(…) F. E and F (r, m) are two matrices, learnt; the paper also tries F = E ("key-value
// sharing", § 4). Ours, for want of learnt ones: both are the mean over r segments of the text (one and the same, as in
// the paper's pooling), or drawn from N(0, 1/r) as in its theorem, F apart from E unless they share.
// The method is for encoders: a projected key mixes the whole text. Under a mask each query gets its own E and F, cut
// to the keys that it may see (means over what is left of a segment), which is exact about what is seen but no longer
// linear. Shapes: E, F (r, m), E K (r, d), P̄ (n, r). Cost: (n + m) r (d + d_v) multiply-adds where nothing is masked.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/row_stats.h"

namespace headscope::mechanism {

namespace {

enum class Of { keys, values };

bool drawn(const MechanismValues& values) {
  return values.whole("projection") == 1;
}
/// E and F are one matrix: segments are, whatever is asked.
bool one_matrix(const MechanismValues& values) {
  return !drawn(values) || values.whole("sharing") == 1;
}

/// E or F for a query that sees what `hidden` (may be null, one entry per key) leaves.
Tensor projection(const MechanismValues& values, Of of, Index r, Index m, const std::uint8_t* hidden) {
  if (drawn(values)) {
    const std::uint64_t seed = values.seed() + (of == Of::values && !one_matrix(values) ? 1 : 0);
    Tensor e = times(gaussian(r, m, seed), static_cast<float>(1 / std::sqrt(static_cast<double>(r))));
    if (hidden)
      for (Index s = 0; s < r; ++s)
        for (Index j = 0; j < m; ++j)
          if (hidden[j]) e.ref(s, j) = 0;
    return e;
  }
  Tensor e = Tensor::zeros({r, m});
  for (Index s = 0; s < r; ++s) {
    const Index begin = s * m / r, end = (s + 1) * m / r;
    Index seen = 0;
    for (Index j = begin; j < end; ++j) seen += !hidden || !hidden[j];
    for (Index j = begin; j < end; ++j)
      if (!hidden || !hidden[j]) e.ref(s, j) = 1 / static_cast<float>(seen);
  }
  return e;
}

/// softmax(scale · q (E K)ᵀ) of one query, over the segments that hold a visible key.
void weigh(const MechanismInput& in, Index query, const Tensor& keys, const Tensor& e, std::span<float> row) {
  for (Index s = 0; s < keys.dim(0); ++s) {
    bool any = false;
    for (Index j = 0; j < e.dim(1) && !any; ++j) any = e.at(s, j) != 0;
    float dot = 0;
    for (Index c = 0; c < in.d(); ++c) dot += in.q.at(query, c) * keys.at(s, c);
    nth(row, s) = any ? in.scale * dot : -std::numeric_limits<float>::infinity();
  }
  softmax_row(row);
}

MechanismResult run_linformer(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const Index r = std::min(values.whole("rank"), in.m());
  const auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  const Tensor whole = projection(values, Of::keys, r, in.m(), nullptr), keys = product(whole, in.k),
               whole_f = projection(values, Of::values, r, in.m(), nullptr);
  Tensor shares = Tensor::zeros({in.n(), r});
  MechanismResult result;
  result.kind = MapKind::effective;
  result.weights = Tensor::zeros({in.n(), in.m()});
  for (Index i = 0; i < in.n(); ++i) {
    check(in);
    Tensor e = whole, f = whole_f, own = keys;
    if (!hidden.empty()) {
      e = projection(values, Of::keys, r, in.m(), hidden.data() + i * in.m());
      f = one_matrix(values) ? e : projection(values, Of::values, r, in.m(), hidden.data() + i * in.m());
      own = product(e, in.k);
    }
    weigh(in, i, own, e, {&shares.ref(i, 0), static_cast<std::size_t>(r)});
    for (Index s = 0; s < r; ++s)
      for (Index j = 0; j < in.m(); ++j) result.weights.ref(i, j) += shares.at(i, s) * f.at(s, j);
  }
  result.output = product(result.weights, in.v);
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  result.steps.push_back({.id = "projection",
                          .title = one_matrix(values) ? "E = F" : "E",
                          .formula = said("along the text, m → r"),
                          .value = whole,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::key});
  if (!one_matrix(values))
    result.steps.push_back({.id = "projection-f",
                            .title = "F",
                            .formula = said("of the values"),
                            .value = whole_f,
                            .rows = MechanismAxis::other,
                            .columns = MechanismAxis::key});
  result.steps.push_back(
      {.id = "keys",
       .title = "E K",
       .formula = hidden.empty() ? said("r keys for the whole text") : said("for a query that sees everything"),
       .value = keys,
       .rows = MechanismAxis::other,
       .columns = MechanismAxis::dimension,
       .explain = explain_product(whole, in.k)});
  result.steps.push_back({.id = "shares",
                          .title = "P̄",
                          .formula = "softmax(" + scores_text(in, "(E K)ᵀ") + ")",
                          .value = shares,
                          .range = MechanismStep::Range::probability,
                          .columns = MechanismAxis::other});
  result.steps.push_back(
      {.id = "weights",
       .title = said("Effective weights"),
       .formula = "P̄ F",
       .value = result.weights,
       .range = drawn(values) ? MechanismStep::Range::signed_values : MechanismStep::Range::probability,
       .masked = hidden});
  result.steps.push_back(output_step(result.weights, in.v, result.output, "P̄ (F V)"));
  return result;
}

Tensor linformer_output(const MechanismInput& in, const MechanismValues& values) {
  if (!is_full(*in.rule, in.n(), in.m())) return run_linformer(in, values, Detail::output).output;
  const Index r = std::min(values.whole("rank"), in.m());
  const Tensor e = projection(values, Of::keys, r, in.m(), nullptr),
               f = projection(values, Of::values, r, in.m(), nullptr);
  const Tensor shares = softmax_rows(times(product_t(in.q, product(e, in.k)), in.scale));
  return product(shares, product(f, in.v));
}

bool drawn_projections(const MechanismValues& v, const MechanismShape&) {
  return v.whole("projection") == 1;
}

}  // namespace

Mechanism make_linformer() {
  Mechanism m;
  m.id = "linformer";
  m.title = to_say("Linformer: keys and values projected along the text");
  m.name = to_say("Linformer");
  m.group = to_say("Low rank & kernel");
  m.source = "Wang et al. 2020";
  m.formula = "O = softmax(Q (E K)ᵀ ÷ √d) (F V)";
  m.meaning = to_say(
      "Attention matrices are nearly of low rank, so r summaries of the keys stand in for all m of them. Tokens of one "
      "summary cannot be told apart.");
  m.keywords = "low rank projection";
  m.ours = to_say(
      "E and F are learnt in the paper; here they are the means of segments, one matrix for both, or drawn. Under a "
      "mask each query has its own, cut to what it sees.");
  m.parameters = {
      whole_parameter("rank", to_say("Projected length r"), to_say("Summaries that stand for all keys."), 1, 512, 8,
                      true),
      choice_parameter("projection", to_say("Projections E, F"), to_say("Means of segments, or drawn from N(0, 1/r)."),
                       {to_say("segments"), to_say("gaussian")}),
      only_where(choice_parameter("sharing", "F",
                                  to_say("Of its own, or F = E (key-value sharing). Segments are one and the same."),
                                  {to_say("own"), to_say("key-value")}),
                 drawn_projections),
      only_where(seed_parameter(to_say("of drawn E and F")), drawn_projections)};
  m.run = run_linformer;
  m.score_edits = ScoreEdits::scaled;
  m.output = linformer_output;
  m.encoder = true;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    const auto n = static_cast<double>(s.n);
    const double r = std::min(v.number("rank"), n), width = static_cast<double>(s.d + s.d_v);
    return MechanismCost{2 * n * r * width, 0, r * width * 4, 4 * (2 * n * width + 4 * n * r)};
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    using Role = ShapeChip::Role;
    const Index r = std::min(v.whole("rank"), s.n);
    return std::vector<ShapeChip>{
        chip(Role::query, "Q", s.rows(), s.d),     chip(Role::key, "(E K)ᵀ", s.d, r, "·"),
        chip(Role::plain, "softmax", s.rows(), r), chip(Role::value, "F V", r, s.d_v, "·"),
        chip(Role::output, "O", s.rows(), s.d_v),  {Role::remark, say("never builds {}×{}", s.rows(), s.n), ""}};
  };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult&) -> std::string {
    const Index r = std::min(v.whole("rank"), in.m());
    if (drawn(v))
      return said("Drawn, E and F mix every key into every summary, with both signs: weights may be negative.");
    if (r == in.m()) return said("With as many summaries as keys nothing is summed up: this is softmax attention.");
    const Index least = in.m() / r, most = (in.m() + r - 1) / r;
    return say("Runs of {} neighbouring keys share one weight: the map turns into steps.",
               least == most ? fmt::format("{}", least) : say("{} or {}", least, most));
  };
  return m;
}

}  // namespace headscope::mechanism
