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

MechanismResult run(const MechanismInput& in, const MechanismValues& values, Detail) {
  const Index d = values.whole("width");
  const Index pairs = 20'000'000 / std::max<Index>(d, 500);
  MechanismResult result;
  MechanismCurve plain{"q·k as it comes, for four widths", "q·k", "density", {}, false, {}};
  MechanismCurve scaled{"q·k ÷ √d, for the same", "q·k ÷ √d", "density", {}, false, {}};
  MechanismCurve entropy{"A row of 64 scores through softmax, over the width",
                         "d",
                         "entropy, nats",
                         {{"unscaled", {}, {}}, {"÷ √d", {}, {}}},
                         true,
                         {}};
  for (const Index each : {Index{8}, Index{32}, Index{128}, Index{512}}) {
    check(in);
    const auto x = dots(each, 20000, values.seed());
    plain.lines.push_back(histogram(x, 1, 60, fmt::format("d = {}", each)));
    scaled.lines.push_back(histogram(x, 1 / std::sqrt(static_cast<double>(each)), 4, fmt::format("d = {}", each)));
  }
  for (Index each = 1; each <= 512; each *= 2) {
    check(in);
    for (const bool divide : {false, true}) {
      const auto x = dots(each, 64 * 20, values.seed() + 7);
      double sum = 0;
      for (std::size_t row = 0; row < 20; ++row) {
        Tensor scores = Tensor::zeros({1, 64});
        for (std::size_t j = 0; j < 64; ++j)
          scores.ref(0, static_cast<Index>(j)) =
              static_cast<float>(x[64 * row + j] / (divide ? std::sqrt(static_cast<double>(each)) : 1));
        sum += mean_entropy(softmax_rows(scores)) / 20;
      }
      entropy.lines[divide].x.push_back(static_cast<double>(each));
      entropy.lines[divide].y.push_back(sum);
    }
  }
  const auto own = dots(d, pairs, values.seed());
  const double v = variance(own);
  result.facts = {
      {"Variance of q·k", fmt::format("{:.2f}, expected {}", v, d),
       fmt::format("of {} drawn pairs of width {}", pairs, d)},
      {"After ÷ √d", fmt::format("{:.3f}, expected 1", v / static_cast<double>(d)), "the same divided by d"}};
  result.curves = {std::move(plain), std::move(scaled), std::move(entropy)};
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
  m.keywords = "scaled histogram variance sqrt of dot product scaling square root of d why divide";
  m.parameters = {whole_parameter("width", "Width d", "Of the pairs whose variance is taken.", 8, 512, 64, true),
                  seed_parameter()};
  m.run = run;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return "Variance of q·k: " + r.facts[0].value +
           ". Divided by √d all widths fall on one curve, and the entropy of a row stays.";
  };
  return m;
}

}  // namespace headscope::mechanism
