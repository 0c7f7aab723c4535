// Polynomial kernels as feature maps: the products of all pairs of dimensions give (q·k)² exactly. "taylor" is
// 1 + x + x²/2, the beginning of exp (Arora et al., Simple Linear Attention Language Models Balance the
// Recall-Throughput Tradeoff (Based), 2024; Keles et al., On the Computational Complexity of Self-Attention, 2023);
// x = scale · q·k. Every pair i < j is kept once, times √2.
// Shapes: φ (n, d(d+1)/2 [+ d + 1]). Cost: n d² for the map, 2 n r d_v for the rest: the price is r ≈ d²/2.

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// Weights of 1, x and x² in the kernel.
struct PolynomialForm {
  double constant, linear, square;
  std::string formula;
};
PolynomialForm polynomial_form(const MechanismValues& values) {
  switch (values.whole("form")) {
    case 0:
      return {1, 1, 0.5, "φ(q)·φ(k) = 1 + x + x²/2"};
    case 1:
      return {1, 2, 1, "φ(q)·φ(k) = (1 + x)²"};
    default:
      return {0, 0, 1, "φ(q)·φ(k) = x²"};
  }
}
Index count(Index d, const PolynomialForm& form) {
  return d * (d + 1) / 2 + (form.linear > 0 ? d : 0) + (form.constant > 0 ? 1 : 0);
}

Tensor expanded(const Tensor& x, const PolynomialForm& form, double root) {
  const Index d = x.dim(1);
  Tensor out = Tensor::zeros({x.dim(0), count(d, form)});
  for (Index i = 0; i < x.dim(0); ++i) {
    Index c = 0;
    if (form.constant > 0) out.ref(i, c++) = static_cast<float>(std::sqrt(form.constant));
    if (form.linear > 0)
      for (Index a = 0; a < d; ++a)
        out.ref(i, c++) = static_cast<float>(std::sqrt(form.linear) * root * static_cast<double>(x.at(i, a)));
    for (Index a = 0; a < d; ++a)
      for (Index b = a; b < d; ++b)
        out.ref(i, c++) = static_cast<float>(std::sqrt(form.square * (a == b ? 1 : 2)) * root * root *
                                             static_cast<double>(x.at(i, a)) * static_cast<double>(x.at(i, b)));
  }
  return out;
}

Kernel polynomial_features(const MechanismInput& in, const MechanismValues& values) {
  const PolynomialForm form = polynomial_form(values);
  const double root = std::sqrt(std::abs(static_cast<double>(in.scale)));
  return {expanded(in.q, form, root), expanded(in.k, form, root), form.formula, norm_of(values)};
}

}  // namespace

Mechanism make_polynomial() {
  Mechanism m;
  m.id = "polynomial";
  m.title = to_say("Polynomial feature maps");
  m.name = to_say("Polynomial (Taylor)");
  m.source = "Arora et al. 2024 (Based)";
  m.formula = "φ(q)·φ(k) = 1 + x + x²/2,  x = q·k ÷ √d";
  m.meaning = to_say(
      "The first terms of exp as exact features: near softmax while scores are small. Below −1 the parabola rises "
      "again, so strong disagreement is mistaken for agreement.");
  m.keywords = "taylor quadratic based feature map";
  m.parameters = {choice_parameter("form", to_say("Kernel"), to_say("Of the score x."),
                                   {to_say("taylor"), to_say("affine"), to_say("square")}),
                  norm_parameter()};
  use_kernel<polynomial_features>(m);
  m.score_edits = ScoreEdits::scaled;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d);
    return kernel_cost(s, count(s.d, polynomial_form(v)), n * d * (d + 1));
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    return kernel_chips(s, count(s.d, polynomial_form(v)), norm_of(v));
  };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult&) -> std::string {
    const Tensor scores = raw_scores(in);
    Index large = 0;
    for (const float s : scores.values()) large += std::abs(s) > 2;
    return say("{:.0f} % of all scores lie beyond ±2, where {} is no likeness of exp; {} features for d = {}.",
               100.0 * static_cast<double>(large) / static_cast<double>(scores.size()),
               polynomial_form(v).formula.substr(14), count(in.d(), polynomial_form(v)), in.d());
  };
  return m;
}

}  // namespace headscope::mechanism
