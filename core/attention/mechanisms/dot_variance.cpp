// Why √d (Vaswani et al. 2017, section 3.2.1): the sum of d products of independent numbers with mean 0 and variance 1
// has variance d. Drawn here: pairs q, k ~ N(0, I_d), a histogram of q·k for several d, before and after ÷ √d, and what
// unscaled scores do to a row of softmax.
// Cost: pairs · d.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/random.h"

namespace headscope::mechanism {

namespace {

std::vector<double> dots(Index d, Index pairs, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> out;
  for (Index i = 0; i < pairs; ++i) {
    double sum = 0;
    for (Index c = 0; c < d; ++c) {
      const double a = static_cast<double>(random.normal());  // the order of drawing is part of the result
      sum += a * static_cast<double>(random.normal());
    }
    out.push_back(sum);
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

Rows rows_of(Index d, bool divide, std::uint64_t seed) {
  constexpr Index rows = 101, keys = 64;
  const auto x = dots(d, rows * keys, seed);
  const double unit = divide ? 1 / std::sqrt(static_cast<double>(d)) : 1;
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
std::vector<Index> widths_beside(Index d) {
  std::vector<Index> out{d};
  for (Index each = 32; each <= 512; each += 32)
    if (std::abs(each - d) >= 32 || each == d) out.push_back(each);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

MechanismResult run(const MechanismInput& in, const MechanismValues& values, Detail) {
  const Index d = values.whole("width");
  const Index pairs = 20'000'000 / std::max<Index>(d, 500);
  const auto width = static_cast<double>(d);
  MechanismResult result;
  MechanismCurve bars{"Variance of q·k, as it comes", "d", "variance", {{"", {}, {}}}, false, {}};
  bars.bars = true;
  MechanismCurve plain{"q·k as it comes, for four widths", "q·k", "density", {}, false, {}};
  MechanismCurve scaled{"q·k ÷ √d, for the same", "q·k ÷ √d", "density", {}, false, {}};
  const std::vector<MechanismCurve::Line> both{{"unscaled", {}, {}}, {"÷ √d", {}, {}}};
  MechanismCurve entropy{"A row of 64 scores through softmax, over the width", "d", "entropy, nats", both, true, {}};
  MechanismCurve gradient{"What is left of its gradient, ‖diag(p) − p pᵀ‖", "d", "‖J‖, median row", both, true, {}};
  for (const Index each : {Index{8}, Index{32}, Index{128}, Index{512}}) {
    check(in);
    const auto x = dots(each, 20000, values.seed());
    plain.lines.push_back(histogram(x, 1, 60, fmt::format("d = {}", each)));
    scaled.lines.push_back(histogram(x, 1 / std::sqrt(static_cast<double>(each)), 4, fmt::format("d = {}", each)));
  }
  const auto own = dots(d, pairs, values.seed());
  const double v = variance(own);
  for (const Index each : widths_beside(d)) {
    check(in);
    bars.lines[0].x.push_back(static_cast<double>(each));
    bars.lines[0].y.push_back(each == d ? v : variance(dots(each, 10000, values.seed() + 3)));
  }
  bars.marker = {width, v};
  Rows here[2], widest[2];
  std::vector<Index> widths{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  if (std::ranges::find(widths, d) == widths.end()) widths.push_back(d);
  std::ranges::sort(widths);
  for (const Index each : widths) {
    check(in);
    for (const bool divide : {false, true}) {
      const Rows rows = rows_of(each, divide, values.seed() + 7);
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
      {"Variance of q·k", fmt::format("{:.2f}, expected {}", v, d),
       fmt::format("of {} drawn pairs of width {}", pairs, d)},
      {"After ÷ √d", fmt::format("{:.3f}, expected 1", v / width), "the same divided by d"},
      {"Gradient ‖J‖ at this d", fmt::format("{:.2g} unscaled, {:.2g} after ÷ √d", here[0].gradient, here[1].gradient),
       "Frobenius norm of diag(p) − p pᵀ, median of 101 rows of 64 drawn scores"},
      {"Gradient ‖J‖ at d = 512",
       fmt::format("{:.2g} unscaled, {:.2g} after ÷ √d", widest[0].gradient, widest[1].gradient), "likewise"}};
  result.curves = {std::move(bars), std::move(gradient), std::move(plain), std::move(scaled), std::move(entropy)};
  return result;
}

}  // namespace

Mechanism make_dot_variance() {
  Mechanism m;
  m.id = "dot-variance";
  m.title = "Why scores are divided by √d";
  m.name = "√d scaling, variance of q·k";
  m.group = "Softmax and scaling";
  m.source = "Vaswani et al. 2017";
  m.formula = "Var(q·k) = d  ⇒  Var(q·k ÷ √d) = 1";
  m.meaning =
      "A dot product adds d terms, so its variance grows with d. Unscaled, wide heads start almost one-hot, where "
      "softmax "
      "has no gradient.";
  m.keywords = "scaled histogram variance gradient jacobian sqrt of dot product scaling square root of d why divide";
  m.parameters = {whole_parameter("width", "Width d", "Of the pairs whose variance is taken.", 1, 512, 64, true),
                  seed_parameter()};
  m.run = run;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return fmt::format(
        "Variance of q·k: {}. Gradient of softmax: {}; at d = 512 {}. Divided by √d all widths fall on one curve, and "
        "a "
        "row keeps its entropy and its gradient.",
        r.facts[0].value, r.facts[2].value, r.facts[3].value);
  };
  return m;
}

}  // namespace headscope::mechanism
