// Performer, FAVOR+ (Choromanski et al., Rethinking Attention with Performers, 2021): positive random features
//   φ(x) = exp(W x − ‖x‖²/2) / √r,  x = q or k times √scale,  rows of W ~ N(0, I), orthogonal in blocks,
// whose inner product has the expectation exp(scale · q·k). The largest exponent is taken off first (per query row,
// over all keys), which the normalisation cancels. Shapes: W (r, d), φ (n, r). Cost: 2 n r d for the features, 2 n r
// d_v for the rest; state r (d_v + 1) floats.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/attention/mechanisms/random_features.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// exp(W x − ‖x‖²/2 − largest) / √r; `by_row`: the largest of each row, else of all.
Tensor positive_features(const Tensor& x, const Tensor& w, bool by_row) {
  Tensor out = product_t(x, w);
  const auto largest = [&](Index begin, Index end) {
    float max = -std::numeric_limits<float>::infinity();
    for (Index i = begin; i < end; ++i)
      for (Index c = 0; c < out.dim(1); ++c) max = std::max(max, out.at(i, c));
    return max;
  };
  for (Index i = 0; i < out.dim(0); ++i) {
    double half = 0;
    for (Index c = 0; c < x.dim(1); ++c) half += static_cast<double>(x.at(i, c)) * static_cast<double>(x.at(i, c)) / 2;
    for (Index c = 0; c < out.dim(1); ++c) out.ref(i, c) -= static_cast<float>(half);
  }
  const float all = by_row ? 0 : largest(0, out.dim(0));
  const auto unit = static_cast<float>(1 / std::sqrt(static_cast<double>(w.dim(0))));
  for (Index i = 0; i < out.dim(0); ++i) {
    const float max = by_row ? largest(i, i + 1) : all;
    for (Index c = 0; c < out.dim(1); ++c) out.ref(i, c) = unit * std::exp(out.at(i, c) - max);
  }
  return out;
}

Kernel performer_features(const MechanismInput& in, const MechanismValues& values) {
  const float root = std::sqrt(std::abs(in.scale));
  const Tensor w = directions(values.whole("features"), in.d(), values.on("orthogonal"), values.seed());
  return {positive_features(times(in.q, root), w, true), positive_features(times(in.k, root), w, false),
          "φ(x) = exp(W x − ‖x‖²/2) ÷ √r", Kernel::Norm::sum};
}

MechanismResult run_performer(const MechanismInput& in, const MechanismValues& values, Detail detail);

}  // namespace

Mechanism make_performer() {
  Mechanism m;
  m.id = "performer";
  m.title = to_say("Performer: positive random features (FAVOR+)");
  m.name = to_say("Performer (FAVOR+)");
  m.source = "Choromanski et al. 2021";
  m.formula = "φ(x) = exp(W x − ‖x‖²/2) ÷ √r,  E[φ(q)·φ(k)] = exp(q·k)";
  m.meaning = to_say(
      "Random directions whose exponentials multiply to exp(q·k) on average. All features are positive, so no sum "
      "comes near 0, and the error falls as features are added.");
  m.keywords = "random features FAVOR kernel FAVOR+ positive orthogonal approximation softmax";
  m.parameters = random_feature_parameters();
  use_kernel<performer_features>(m);
  m.run = run_performer;
  m.score_edits = ScoreEdits::scaled;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    return kernel_cost(s, v.whole("features"),
                       2 * static_cast<double>(s.n) * v.number("features") * static_cast<double>(s.d));
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    return kernel_chips(s, v.whole("features"), Kernel::Norm::sum);
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) {
    return say(
        "An estimate with {} random features: another seed gives another map, more features a nearer one. Sharp rows "
        "are the hardest.",
        text(v.number("features")));
  };
  return m;
}

namespace {

/// ln φ(q)·φ(k) against scale · q·k of the cells that the mask leaves, or of `most_points` drawn from them. In double,
/// without what the features take off against overflow.
MechanismCurve cloud(const MechanismInput& in, const MechanismValues& values) {
  constexpr Index most_points = 600;
  const double root = std::sqrt(std::abs(static_cast<double>(in.scale)));
  const Tensor w = directions(values.whole("features"), in.d(), values.on("orthogonal"), values.seed());
  const Tensor q = times(in.q, static_cast<float>(root)), k = times(in.k, static_cast<float>(root));
  const Tensor along_q = product_t(q, w), along_k = product_t(k, w);  // (n, r), (m, r)
  const auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  const auto dot = [](const Tensor& a, Index i, const Tensor& b, Index j) {
    double sum = 0;
    for (Index c = 0; c < a.dim(1); ++c) sum += static_cast<double>(a.at(i, c)) * static_cast<double>(b.at(j, c));
    return sum;
  };
  Index left = hidden.empty() ? in.n() * in.m() : static_cast<Index>(std::ranges::count(hidden, 0));
  Index wanted = std::min(left, most_points);
  Random random(values.seed());
  MechanismCurve curve{wanted < left ? say("Estimate against truth, {} of {} pairs drawn", wanted, left)
                                     : say("Estimate against truth, a point for each of {} pairs", left),
                       scores_text(in),
                       "ln φ(q)·φ(k)",
                       {{"pairs", {}, {}}, {"equal", {}, {}}},
                       false,
                       {}};
  curve.lines[0].dots = true, curve.lines[1].level = true;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (Index cell = 0; wanted > 0; ++cell) {
    if (!hidden.empty() && nth(hidden, cell)) continue;
    // Each set of so many cells is as likely as any other (Knuth's Algorithm S).
    const bool taken = random.uniform() * static_cast<double>(left--) < static_cast<double>(wanted);
    if (!taken) continue;
    --wanted;
    check(in);
    const Index i = cell / in.m(), j = cell % in.m();
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (Index f = 0; f < w.dim(0); ++f)
      largest = std::max(largest, static_cast<double>(along_q.at(i, f)) + static_cast<double>(along_k.at(j, f)));
    for (Index f = 0; f < w.dim(0); ++f)
      sum += std::exp(static_cast<double>(along_q.at(i, f)) + static_cast<double>(along_k.at(j, f)) - largest);
    const double truth = dot(q, i, k, j);
    curve.lines[0].x.push_back(truth);
    curve.lines[0].y.push_back(largest + std::log(sum / static_cast<double>(w.dim(0))) - dot(q, i, q, i) / 2 -
                               dot(k, j, k, j) / 2);
    low = std::min(low, truth), high = std::max(high, truth);
  }
  if (curve.lines[0].x.empty())
    curve.lines.pop_back();
  else
    curve.lines[1].x = curve.lines[1].y = {low, high};
  return curve;
}

MechanismResult run_performer(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  MechanismResult result = kernel_attention(in, performer_features(in, values), detail);
  if (detail == Detail::steps) result.curves = {error_curve(in, values, make_performer()), cloud(in, values)};
  return result;
}

}  // namespace

}  // namespace headscope::mechanism
