// The rank of a head (Bhojanapalli et al., Low-Rank Bottleneck in Multi-head Attention Models, 2020): Q Kᵀ is a product
// of two matrices of width d, so rank(Q Kᵀ) ≤ d whatever the text; exp of every entry has no such bound, and softmax
// raises the rank, the mask once more (a triangle with a positive diagonal is never singular). Singular values in
// float64, counted as 0 below σ₁ · 10⁻⁶. Shapes: Q Kᵀ, softmax (n, m). Cost: three decompositions, n³ each.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/spectrum.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/tensor/decompositions.h"
#include "core/tensor/matrices.h"

namespace headscope::mechanism {

namespace {

constexpr double floor_of_chart = -8;
constexpr Index most_tokens = 512;  // a decomposition takes n³

std::vector<double> sigma_of(const Eigen::MatrixXd& m) {
  const Eigen::VectorXd sigma = singular_values_of(m);
  return {sigma.begin(), sigma.end()};
}

/// log₁₀ σᵢ ÷ σ₁, from i = 1.
MechanismCurve::Line spectrum(std::string label, const std::vector<double>& sigma) {
  MechanismCurve::Line line{std::move(label), {}, {}};
  for (std::size_t i = 0; i < sigma.size(); ++i) {
    line.x.push_back(static_cast<double>(i + 1));
    const double share = sigma.front() > 0 ? sigma[i] / sigma.front() : 0;
    line.y.push_back(share > 0 ? std::max(std::log10(share), floor_of_chart) : floor_of_chart);
  }
  return line;
}

/// Each row's softmax of s · scores, in double.
Eigen::MatrixXd sharpened(const Eigen::MatrixXd& scores, double sharpness, const std::vector<std::uint8_t>& hidden) {
  Eigen::MatrixXd p = Eigen::MatrixXd::Zero(scores.rows(), scores.cols());
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    const auto sees = [&](Eigen::Index j) { return hidden.empty() || !nth(hidden, i * p.cols() + j); };
    double most = -1e300, sum = 0;
    for (Eigen::Index j = 0; j < p.cols(); ++j)
      if (sees(j)) most = std::max(most, sharpness * scores(i, j));
    for (Eigen::Index j = 0; j < p.cols(); ++j)
      if (sees(j)) sum += p(i, j) = std::exp(sharpness * scores(i, j) - most);
    if (sum > 0) p.row(i) /= sum;
  }
  return p;
}

MechanismResult run_rank(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const Index n = std::min(in.n(), most_tokens), m = std::min(in.m(), most_tokens),
              d = std::min(in.d(), values.whole("dimensions"));
  const double sharpness = values.number("sharpness");
  const Tensor q = in.q.slice(0, 0, n).slice(1, 0, d), k = in.k.slice(0, 0, m).slice(1, 0, d);
  const Eigen::MatrixXd scores = static_cast<double>(in.scale) * matrix_of(q) * matrix_of(k).transpose();
  const auto hidden = hidden_cells(*in.rule, n, m);
  const Eigen::MatrixXd open = sharpened(scores, sharpness, {}), seen = sharpened(scores, sharpness, hidden);
  const std::vector<double> before = sigma_of(scores), after = sigma_of(open), masked = sigma_of(seen);
  check(in);
  MechanismResult result;
  result.steps.push_back({.id = "scores",
                          .title = "Q Kᵀ",
                          .formula = say("{} × {} numbers made of {} × {}", n, m, n + m, d),
                          .value = tensor_of(scores),
                          .explain = explain_product_t(q, k, static_cast<double>(in.scale))});
  result.steps.push_back({.id = "softmax",
                          .title = said("softmax, no mask"),
                          .formula = said("each row of it"),
                          .value = tensor_of(open),
                          .range = MechanismStep::Range::probability});
  if (!hidden.empty())
    result.steps.push_back({.id = "masked",
                            .title = said("softmax under the mask"),
                            .formula = in.rule->describe(),
                            .value = tensor_of(seen),
                            .range = MechanismStep::Range::probability,
                            .masked = hidden});
  MechanismCurve curve{say("Singular values: Q Kᵀ ends at d = {}, softmax does not", d), "i",   "log₁₀ σᵢ ÷ σ₁",
                       {spectrum("softmax", after), spectrum("Q Kᵀ", before)},           false, {}};
  if (!hidden.empty()) curve.lines.push_back(spectrum(said("masked"), masked));
  if (d < std::min(n, m)) {
    const auto bound = static_cast<double>(d);
    curve.lines.push_back({fmt::format("d = {}", d), {bound, bound}, {floor_of_chart, 0}});
  }
  result.curves.push_back(std::move(curve));
  MechanismCurve rising{
      said("Rank of softmax as scores are sharpened"), said("sharpness"), said("rank"), {{"", {}, {}}}, true, {}};
  if (std::max(n, m) <= 128) {  // so many decompositions of more would keep the reader waiting
    for (int i = 0; i <= 20; ++i) {
      check(in);
      const double at = 0.05 * std::pow(2000.0, i / 20.0);
      rising.lines[0].x.push_back(at);
      rising.lines[0].y.push_back(numeric_rank(sigma_of(sharpened(scores, at, {}))));
    }
    rising.marker = {sharpness, static_cast<double>(numeric_rank(after))};
    result.curves.push_back(std::move(rising));
  }
  const auto told = [&](const std::vector<double>& sigma) {
    return say("{} of {}, 90 % energy in {}", numeric_rank(sigma), sigma.size(), energy_rank(sigma, 0.9));
  };
  const std::string counted = said("singular values above 10⁻⁶ of the largest, float64");
  result.facts = {
      {said("Bound"), say("rank(Q Kᵀ) ≤ d = {}", d),
       say("a product of an n × d and a d × m matrix; of the {} dimensions of the head the first {}", in.d(), d)},
      {said("Rank of Q Kᵀ"), told(before), counted},
      {said("Rank after softmax"), told(after), counted},
      {said("Rank under the mask"), told(masked), counted}};
  return result;
}

}  // namespace

Mechanism make_rank() {
  Mechanism m;
  m.id = "rank";
  m.title = to_say("Rank of a head: at most d before softmax, more after it");
  m.name = to_say("Rank before and after softmax");
  m.group = to_say("Low rank & kernel");
  m.source = "Bhojanapalli et al. 2020";
  m.formula = to_say("rank(Q Kᵀ) ≤ d_head");
  m.meaning = to_say(
      "Scores of a thousand tokens are made of d numbers for each: their matrix has rank d at most. The exponential "
      "of every entry breaks that bound, which is one thing that linear attention gives up.");
  m.keywords = "low-rank bottleneck d_head spectrum singular values rank of QK softmax raises rank expressiveness";
  m.parameters = {whole_parameter("dimensions", to_say("Dimensions d"),
                                  to_say("The first so many of q and k make the scores."), 1, 256, 8, true),
                  number_parameter("sharpness", to_say("Sharpness"),
                                   to_say("Scores are multiplied by it before softmax."), 0.05, 100, 1, true)};
  m.run = run_rank;
  m.study = true;
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult& r) -> std::string {
    const Index d = std::min(in.d(), v.whole("dimensions"));
    if (d >= std::min(in.n(), in.m()))
      return say("With {} tokens and d = {} the bound says nothing: take more tokens than d.", in.n(), d);
    return say("{}Q Kᵀ: rank {}; after softmax: {}; under the mask: {}.",
               d < in.d() ? say("Of the head's {} dimensions {} make the scores; with more tokens "
                                "take them all. ",
                                in.d(), d)
                          : "",
               nth(r.facts, 1).value, nth(r.facts, 2).value, nth(r.facts, 3).value);
  };
  return m;
}

}  // namespace headscope::mechanism
