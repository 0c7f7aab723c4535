// Why projections: softmax(X Xᵀ) X without weights against (X W_Q)(X W_K)ᵀ. X Xᵀ is symmetric: a looks at b as b at a.
// By Cauchy and Schwarz a row's own cell is its largest unless a longer row outdoes it, x·y > ‖x‖² only where
// ‖y‖ > ‖x‖. With W_Q ≠ W_K neither holds. X is what the layer of a model reads, W_Q, W_K, W_V the chosen head's with
// their biases; without a model X are the keys of the input and W are drawn, entries N(0, 1/d).
// Shapes: X (n, d_model), S (n, n). Cost: n² d, with projections 2 n d² more.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_report.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/words.h"
#include "core/tensor/gap.h"

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

double longest_to_shortest(const Tensor& x) {
  double low = 0, high = 0;
  for (Index i = 0; i < x.dim(0); ++i) {
    double square = 0;
    for (Index c = 0; c < x.dim(1); ++c) square += std::pow(static_cast<double>(x.at(i, c)), 2);
    const double norm = std::sqrt(square);
    low = i ? std::min(low, norm) : norm, high = std::max(high, norm);
  }
  return low > 0 ? high / low : 0;
}

/// x W + b; no b where it is undefined.
Tensor projected(const Tensor& x, const Tensor& w, const Tensor& b) {
  Tensor out = product(x, w);
  if (b.defined())
    for (Index i = 0; i < out.dim(0); ++i)
      for (Index c = 0; c < out.dim(1); ++c) out.ref(i, c) += b.at(c);
  return out;
}

struct Steps {
  std::vector<MechanismStep> all;
  MechanismStep& add(std::string id, std::string title, std::string formula, const Tensor& value, MechanismAxis rows,
                     MechanismAxis columns, std::function<std::string(Index, Index)> explain = {}) {
    MechanismStep s{.id = std::move(id), .title = std::move(title), .formula = std::move(formula), .value = value};
    s.rows = rows, s.columns = columns;
    s.explain = std::move(explain);
    return all.emplace_back(std::move(s));
  }
};

/// `rule`: whose sinks take part; may be null.
std::function<std::string(Index, Index)> explain_share(const Tensor& scores, const Tensor& weights,
                                                       const std::shared_ptr<const AttentionRule>& rule = nullptr) {
  return [scores, weights, rule](Index i, Index j) {
    const float sink = rule ? rule->sink(i) : no_sink;
    return fmt::format(
        "exp({}) ÷ {} = {}", brief(scores.at(i, j)),
        std::isfinite(sink) ? say("(Σ exp over the row + e^{} of the sink)", brief(sink)) : said("Σ exp over the row"),
        brief(weights.at(i, j)));
  };
}

/// Whether they differ by no more than rounding: a projection that nothing turns, norms or scales afterwards.
bool is_read(const Tensor& made, const Tensor& read) {
  constexpr double rounding = 1e-4;
  return made.shape() == read.shape() &&
         greatest_gap(made, read) <= rounding * greatest_gap(read, Tensor::zeros(read.shape()));
}

/// The texts' own example, two-hot rows: "Welcome" shares a part with "Starbucks" and none with "to".
void add_two_hot(Steps& steps) {
  const WorkedExample& example = *std::ranges::find(worked_examples(), "welcome", &WorkedExample::id);
  const Tensor x = example.input().k;
  const std::vector<std::string>& words = example.keys;
  const Tensor scores = product_t(x, x), weights = softmax_rows(scores.copy());
  using enum MechanismAxis;
  steps.add("two-hot", said("Two-hot X"), said("an example by hand"), x, other, dimension).row_names = words;
  MechanismStep& own = steps.add("two-hot-scores", "X Xᵀ", said("symmetric, its diagonal largest"), scores, other,
                                 other, explain_product_t(x, x));
  own.row_names = own.column_names = words;
  MechanismStep& share = steps.add("two-hot-weights", "softmax(X Xᵀ)", said("each row"), weights, other, other,
                                   explain_share(scores, weights));
  share.row_names = share.column_names = words;
  share.range = MechanismStep::Range::probability;
}

MechanismResult run_projections(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const HeadProjections* const own = in.projections.get();
  const Tensor x = own ? own->x : in.k;
  const Index d = x.dim(1);
  const auto drawn = [&](std::uint64_t which) {
    return times(gaussian(d, d, values.seed() + which), static_cast<float>(1 / std::sqrt(static_cast<double>(d))));
  };
  const Tensor wq = own ? own->q : drawn(0), wk = own ? own->k : drawn(1), wv = own ? own->v : drawn(2);
  const Tensor none;
  const Tensor q = projected(x, wq, own ? own->q_bias : none), k = projected(x, wk, own ? own->k_bias : none),
               v = projected(x, wv, own ? own->v_bias : none);
  const Tensor plain = product_t(x, x), looked = product_t(q, k), similar = softmax_rows(plain.copy());
  const float scale = own ? in.scale : static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  Tensor scores = times(looked, scale);
  if (own) apply_rule(*in.rule, scores);
  const Tensor weights = softmax_rows(scores.copy(), own ? in.rule.get() : nullptr);
  const bool read = own && is_read(q, in.q) && is_read(k, in.k) && is_read(v, in.v);
  const auto hidden = own ? hidden_cells(*in.rule, x.dim(0), x.dim(0)) : std::vector<std::uint8_t>{};

  Steps steps;
  using enum MechanismAxis;
  if (own) add_two_hot(steps);
  steps.add("x", "X", own ? say("what the layer reads, {}", own->from) : said("the keys of the input, as embeddings"),
            x, key, dimension);
  steps.add("plain", "X Xᵀ", said("symmetric"), plain, key, key, explain_product_t(x, x));
  steps.add("similar", "softmax(X Xᵀ)", said("each row"), similar, key, key, explain_share(plain, similar)).range =
      MechanismStep::Range::probability;
  steps.add("mixed", "softmax(X Xᵀ) X", said("what attention comes to without weights"), product(similar, x), key,
            dimension, explain_product(similar, x));
  const std::string made = own ? said("W_{} of the head") : said("W_{} drawn");
  const auto with = [&](const char* letter) { return fmt::format(fmt::runtime(made), letter); };
  const auto bias = [&](const Tensor& b) { return own && b.defined() ? " + b" : ""; };
  steps.add("q", fmt::format("Q = X W_Q{}", bias(own ? own->q_bias : none)), with("Q"), q, key, dimension);
  steps.add("k", fmt::format("K = X W_K{}", bias(own ? own->k_bias : none)), with("K"), k, key, dimension);
  steps.add("v", fmt::format("V = X W_V{}", bias(own ? own->v_bias : none)), with("V"), v, key, dimension);
  if (!own)
    for (const auto& [id, w] : {std::pair{"q", wq}, {"k", wk}, {"v", wv}})
      for (MechanismStep& step : steps.all)
        if (step.id == id) step.explain = explain_product(x, w);
  steps.add("projected", "Q Kᵀ", said("no longer symmetric"), looked, key, key, explain_product_t(q, k));
  MechanismStep& looks =
      steps.add("weights", "softmax(Q Kᵀ)", own ? say("scaled, mask: {}", in.rule->describe()) : said("÷ √d, each row"),
                weights, key, key, explain_share(scores, weights, own ? in.rule : nullptr));
  looks.range = MechanismStep::Range::probability;
  looks.masked = hidden;
  steps
      .add("output", "softmax(Q Kᵀ) V",
           !own || read ? said("what the head reads") : said("without positions and norms: not what the head reads"),
           product(weights, v), key, dimension, explain_product(weights, v))
      .mixture = true;

  MechanismResult result;
  result.steps = std::move(steps.all);
  const auto share = [&](const Tensor& s) { return say("{} of {} rows", diagonal_rows(s), s.dim(0)); };
  result.facts = {
      {said("Asymmetry of X Xᵀ"), text(asymmetry(plain)), "‖S − Sᵀ‖ ÷ ‖S‖"},
      {said("Asymmetry with W"), text(asymmetry(looked)), said("the same of (X W_Q)(X W_K)ᵀ")},
      {said("Diagonal largest, X Xᵀ"), share(plain),
       said("rows in which no score exceeds that of the token with itself")},
      {said("Diagonal largest, with W"), share(looked), said("likewise, of Q Kᵀ over all cells, before the mask")},
      {said("Longest row of X ÷ shortest"), brief(longest_to_shortest(x)),
       said("only a longer row y can have x·y above x·x (Cauchy and Schwarz)")}};
  if (own)
    for (const auto& [name, by_weights, reads] : {std::tuple{said("X W_Q + b from the head's queries"), q, in.q},
                                                  {said("X W_K + b from the head's keys"), k, in.k}})
      result.facts.push_back({name, text(greatest_gap(by_weights, reads)),
                              said("largest difference; not 0 where they are normed or turned by their position")});
  return result;
}

}  // namespace

Mechanism make_projections() {
  Mechanism m;
  m.id = "projections";
  m.title = to_say("Why projections: softmax(X Xᵀ) X against Q, K, V");
  m.name = to_say("Why projections");
  m.group = to_say("Heads and projections");
  m.source = "Vaswani et al. 2017";
  m.formula = to_say("X Xᵀ = (X Xᵀ)ᵀ,   (X W_Q)(X W_K)ᵀ ≠ its transpose");
  m.meaning = to_say(
      "Without weights attention is similarity: a looks at b as much as b at a, and at itself unless a longer row "
      "outdoes it. Two different projections let a token look for something other than itself.");
  m.keywords = "welcome to starbucks XXT QKV weight matrices query key value projection W_Q W_K W_V raw";
  m.parameters = {seed_parameter(to_say("of W_Q, W_K and W_V where they are drawn"))};
  m.run = run_projections;
  m.study = true;
  m.reads_projections = true;
  m.note = [](const MechanismInput& in, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say(
        "X Xᵀ is symmetric (asymmetry {}), its diagonal the largest of its row in {}. With {} W_Q and W_K the "
        "asymmetry is {}, and the diagonal is the largest in {}.",
        r.facts[0].value, r.facts[2].value, in.projections ? said("the head's own") : said("drawn"), r.facts[1].value,
        r.facts[3].value);
  };
  return m;
}

}  // namespace headscope::mechanism
