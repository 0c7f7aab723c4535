// Why √d (Vaswani et al. 2017, section 3.2.1): the sum of d products of independent numbers with mean 0 and variance 1
// has variance d. Drawn here: pairs q, k ~ N(0, I_d), a histogram of q·k for several d, before and after ÷ √d, and what
// unscaled scores do to a row of softmax.
// Cost: pairs · 512: one draw, of which every width takes the first d products.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

constexpr Index pairs = 20000;

/// q·k of `pairs` pairs q, k ~ N(0, I) for every width: one draw, its sums noted on the way through the dimensions. A
/// term q_c k_c is the product of the two numbers that Box & Muller make of u and v, √(−2 ln u) cos 2πv and
/// √(−2 ln u) sin 2πv: −ln u · sin 4πv.
std::map<Index, std::vector<double>> dots(const std::set<Index>& widths, const MechanismInput& in, std::uint64_t seed) {
  Random random(seed);
  std::map<Index, std::vector<double>> out;
  for (Index pair = 0; pair < pairs; ++pair) {
    if (pair % 1000 == 0) check(in);
    double sum = 0;
    Index c = 0;
    for (const Index width : widths) {
      for (; c < width; ++c) {
        const double u = 1 - random.uniform();  // (0, 1]; the order of drawing is part of the result
        sum -= std::log(u) * std::sin(4 * std::numbers::pi * random.uniform());
      }
      out[width].push_back(sum);
    }
  }
  return out;
}

double variance(const std::vector<double>& x) {
  double mean = 0, sum = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) sum += (v - mean) * (v - mean);
  return sum / static_cast<double>(x.size() - 1);
}

MechanismCurve::Line histogram(const std::vector<double>& x, double factor, double reach, std::string label) {
  constexpr int bins = 61;
  MechanismCurve::Line line{std::move(label), {}, std::vector<double>(bins, 0.0)};
  const double width = 2 * reach / bins;
  for (int b = 0; b < bins; ++b) line.x.push_back(-reach + (b + 0.5) * width);
  for (const double v : x) {
    const int b = static_cast<int>(std::floor((factor * v + reach) / width));
    if (b >= 0 && b < bins) nth(line.y, b) += 1 / (static_cast<double>(x.size()) * width);
  }
  return line;
}

/// Of rows of 64 drawn scores of width d through softmax. The median gradient: a row in which two keys happen to share
/// first place has the largest of all, ½, however far apart the others are.
struct Rows {
  double entropy = 0, gradient = 0;  // mean, median
};

/// `x`: the dots of one width, that many to a row.
Rows dot_variance_rows(const std::vector<double>& x, double unit) {
  constexpr Index rows = 101, keys = 64;
  static_assert(rows * keys <= pairs);
  Rows out;
  std::vector<double> gradients;
  for (Index row = 0; row < rows; ++row) {
    Tensor scores = Tensor::uninitialized({1, keys});
    for (Index j = 0; j < keys; ++j) scores.ref(0, j) = static_cast<float>(nth(x, row * keys + j) * unit);
    const Tensor p = softmax_rows(std::move(scores));
    out.entropy += mean_entropy(p) / rows;
    gradients.push_back(softmax_gradient(p));
  }
  std::ranges::nth_element(gradients, gradients.begin() + rows / 2);
  out.gradient = gradients[rows / 2];
  return out;
}

/// Those whose bars stand clear of d's, and d.
std::set<Index> widths_beside(Index d) {
  std::set<Index> out{d};
  for (Index each = 32; each <= 512; each += 32)
    if (std::abs(each - d) >= 32) out.insert(each);
  return out;
}

MechanismResult run_dot_variance(const MechanismInput& in, const MechanismValues& values, Detail) {
  const Index d = values.whole("width");
  const auto width = static_cast<double>(d);
  const std::set<Index> drawn{8, 32, 128, 512}, barred = widths_beside(d);
  const std::set<Index> softened{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, d};
  std::set<Index> all = softened;
  all.insert(barred.begin(), barred.end());
  const std::map<Index, std::vector<double>> of = dots(all, in, values.seed());
  MechanismResult result;
  MechanismCurve bars{said("Variance of q·k, as it comes"), "d", said("variance"), {{"", {}, {}}}, false, {}};
  bars.bars = true;
  MechanismCurve plain{said("q·k as it comes, for four widths"), "q·k", said("density"), {}, false, {}};
  MechanismCurve scaled{said("q·k ÷ √d, for the same"), "q·k ÷ √d", said("density"), {}, false, {}};
  const std::vector<MechanismCurve::Line> both{{said("unscaled"), {}, {}}, {"÷ √d", {}, {}}};
  MechanismCurve entropy{
      said("A row of 64 scores through softmax, over the width"), "d", said("entropy, nats"), both, true, {}};
  MechanismCurve gradient{
      said("What is left of its gradient, ‖diag(p) − p pᵀ‖"), "d", said("‖J‖, median row"), both, true, {}};
  for (const Index each : drawn) {
    plain.lines.push_back(histogram(of.at(each), 1, 60, fmt::format("d = {}", each)));
    scaled.lines.push_back(
        histogram(of.at(each), 1 / std::sqrt(static_cast<double>(each)), 4, fmt::format("d = {}", each)));
  }
  const double v = variance(of.at(d));
  for (const Index each : barred) {
    bars.lines[0].x.push_back(static_cast<double>(each));
    bars.lines[0].y.push_back(variance(of.at(each)));
  }
  bars.marker = {width, v};
  Rows here[2], widest[2];
  for (const Index each : softened) {
    check(in);
    for (const bool divide : {false, true}) {
      const Rows rows = dot_variance_rows(of.at(each), divide ? 1 / std::sqrt(static_cast<double>(each)) : 1);
      if (each == d) here[divide] = rows;
      widest[divide] = rows;
      for (auto* curve : {&entropy, &gradient}) curve->lines[divide].x.push_back(static_cast<double>(each));
      entropy.lines[divide].y.push_back(rows.entropy);
      gradient.lines[divide].y.push_back(rows.gradient);
    }
  }
  entropy.marker = {width, here[false].entropy};
  gradient.marker = {width, here[false].gradient};
  result.facts = {
      {said("Variance of q·k"), say("{:.2f}, expected {}", v, d), say("of {} drawn pairs of width {}", pairs, d)},
      {said("After ÷ √d"), say("{:.3f}, expected 1", v / width), said("the same divided by d")},
      {said("Gradient ‖J‖ at this d"), say("{:.2g} unscaled, {:.2g} after ÷ √d", here[0].gradient, here[1].gradient),
       said("Frobenius norm of diag(p) − p pᵀ, median of 101 rows of 64 drawn scores")},
      {said("Gradient ‖J‖ at d = 512"),
       say("{:.2g} unscaled, {:.2g} after ÷ √d", widest[0].gradient, widest[1].gradient), said("likewise")}};
  result.curves = {std::move(bars), std::move(gradient), std::move(plain), std::move(scaled), std::move(entropy)};
  return result;
}

}  // namespace

Mechanism make_dot_variance() {
  Mechanism m;
  m.id = "dot-variance";
  m.title = to_say("Why scores are divided by √d");
  m.name = to_say("√d scaling, variance of q·k");
  m.group = to_say("Softmax and scaling");
  m.source = "Vaswani et al. 2017";
  m.formula = to_say("Var(q·k) = d  ⇒  Var(q·k ÷ √d) = 1");
  m.meaning = to_say(
      "A dot product adds d terms, so its variance grows with d. Unscaled, wide heads start almost one-hot, where "
      "softmax has no gradient.");
  m.keywords = "scaled histogram variance gradient jacobian sqrt of dot product scaling square root of d why divide";
  m.parameters = {
      whole_parameter("width", to_say("Width d"), to_say("Of the pairs whose variance is taken."), 1, 512, 64, true),
      seed_parameter()};
  m.run = run_dot_variance;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say(
        "Variance of q·k: {}. Gradient of softmax: {}; at d = 512 {}. Divided by √d all widths fall on one curve, and "
        "a row keeps its entropy and its gradient.",
        r.facts[0].value, r.facts[2].value, r.facts[3].value);
  };
  return m;
}

}  // namespace headscope::mechanism
