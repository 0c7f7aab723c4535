// Why projections: softmax(X Xᵀ) X without weights against (X W_Q)(X W_K)ᵀ. X Xᵀ is symmetric, and where rows are about
// equally long its diagonal is the largest of each row: every token looks at itself, and a looks at b as b at a. With
// W_Q ≠ W_K neither holds. W are drawn, entries N(0, 1/d).
// Shapes: X (n, d) = the keys of the input, S (n, n). Cost: n² d, with projections 2 n d² more.

#include <fmt/format.h>

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"

namespace headscope::mechanism {

namespace {

double asymmetry(const Tensor& s) {
  double off = 0, all = 0;
  for (Index i = 0; i < s.dim(0); ++i)
    for (Index j = 0; j < s.dim(1); ++j) {
      off += std::pow(static_cast<double>(s.at(i, j)) - static_cast<double>(s.at(j, i)), 2);
      all += std::pow(static_cast<double>(s.at(i, j)), 2);
    }
  return all > 0 ? std::sqrt(off / all) : 0;
}

Index diagonal_rows(const Tensor& s) {
  Index count = 0;
  for (Index i = 0; i < s.dim(0); ++i) {
    bool largest = true;
    for (Index j = 0; j < s.dim(1); ++j) largest = largest && s.at(i, j) <= s.at(i, i);
    count += largest;
  }
  return count;
}

MechanismResult run(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const Tensor& x = in.k;
  const Index d = in.d();
  const auto unit = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const Tensor wq = times(gaussian(d, d, values.seed()), unit), wk = times(gaussian(d, d, values.seed() + 1), unit);
  const Tensor plain = product_t(x, x), q = product(x, wq), k = product(x, wk), projected = product_t(q, k);
  const Tensor weights = softmax_rows(plain.copy());
  MechanismResult result;
  const auto step = [&](const char* id, const char* title, const char* formula, const Tensor& value,
                        MechanismAxis columns, std::function<std::string(Index, Index)> explain) {
    MechanismStep s{.id = id, .title = title, .formula = formula, .value = value};
    s.rows = MechanismAxis::key;
    s.columns = columns;
    s.explain = std::move(explain);
    result.steps.push_back(std::move(s));
  };
  step("x", "X", "the keys of the input, as embeddings", x, MechanismAxis::dimension, {});
  step("plain", "X Xᵀ", "symmetric", plain, MechanismAxis::key, explain_product_t(x, x));
  step("weights", "softmax(X Xᵀ)", "each row", weights, MechanismAxis::key, {});
  result.steps.back().range = MechanismStep::Range::probability;
  step("mixed", "softmax(X Xᵀ) X", "what self-attention comes to without weights", product(weights, x),
       MechanismAxis::dimension, explain_product(weights, x));
  step("q", "Q = X W_Q", "W_Q drawn", q, MechanismAxis::dimension, explain_product(x, wq));
  step("k", "K = X W_K", "W_K drawn", k, MechanismAxis::dimension, explain_product(x, wk));
  step("projected", "Q Kᵀ", "no longer symmetric", projected, MechanismAxis::key, explain_product_t(q, k));
  const auto share = [&](const Tensor& s) { return fmt::format("{} of {} rows", diagonal_rows(s), s.dim(0)); };
  result.facts = {
      {"Asymmetry of X Xᵀ", text(asymmetry(plain)), "‖S − Sᵀ‖ ÷ ‖S‖"},
      {"Asymmetry with W", text(asymmetry(projected)), "the same of (X W_Q)(X W_K)ᵀ"},
      {"Diagonal largest, X Xᵀ", share(plain), "rows in which no score exceeds that of the token with itself"},
      {"Diagonal largest, with W", share(projected), "likewise"}};
  return result;
}

}  // namespace

Mechanism make_projections() {
  Mechanism m;
  m.id = "projections";
  m.title = "Why projections: softmax(X Xᵀ) X against Q, K, V";
  m.name = "Why projections";
  m.group = "Heads and projections";
  m.source = "Vaswani et al. 2017";
  m.formula = "X Xᵀ = (X Xᵀ)ᵀ,   (X W_Q)(X W_K)ᵀ ≠ its transpose";
  m.meaning =
      "Without weights attention is similarity: symmetric, and each token is most like itself. Two different "
      "projections "
      "let a token look for something other than itself.";
  m.keywords = "welcome to starbucks XXT QKV weight matrices query key value projection W_Q W_K W_V raw";
  m.parameters = {seed_parameter("of W_Q and W_K")};
  m.run = run;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return fmt::format(
        "The diagonal is the largest of its row in {} without projections, in {} with them; asymmetry {} and {}.",
        r.facts[2].value, r.facts[3].value, r.facts[0].value, r.facts[1].value);
  };
  return m;
}

}  // namespace headscope::mechanism
