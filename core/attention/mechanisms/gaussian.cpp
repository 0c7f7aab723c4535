// Softmax attention and the Gaussian kernel (Tsai et al., Transformer Dissection, 2019; Choromanski et al. 2021, eq.
// 5):
//   exp(xᵀy) = e^(‖x‖²/2) K(x, y) e^(‖y‖²/2),   K(x, y) = exp(−‖x − y‖²/2),   x = √s q, y = √s k, s the scale.
// The first factor is the same for a whole row and cancels; the last is a bonus for long keys. Without it the weights
// are those of Nadaraya & Watson (1964): each key counts by its distance from the query alone. Keys of one length make
// the two the same. The identity holds with ‖·‖²/2; with ‖·‖², as is sometimes written, it is off by
// e^((‖x‖² + ‖y‖²)/2).
// Shapes: distances, K, weights (n, m). Cost: softmax attention's.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

// Beyond e^80 float32 has no room: the steps then show logarithms.
constexpr double most_exponent = 80;

/// s ‖x_i‖² / 2 of every row.
std::vector<double> half_norms(const Tensor& x, double scale) {
  std::vector<double> out;
  for (Index i = 0; i < x.dim(0); ++i) {
    double sum = 0;
    for (Index c = 0; c < x.dim(1); ++c) sum += static_cast<double>(x.at(i, c)) * static_cast<double>(x.at(i, c));
    out.push_back(scale * sum / 2);
  }
  return out;
}

struct Cells {
  Index n, m;
  std::vector<double> distance;  // s ‖q − k‖², from the differences
  std::vector<double> dot;       // s q·k
  explicit Cells(const MechanismInput& in) : n(in.n()), m(in.m()) {
    for (Index i = 0; i < n; ++i) {
      check(in);
      for (Index j = 0; j < m; ++j) {
        double apart = 0, along = 0;
        for (Index c = 0; c < in.d(); ++c) {
          const double a = static_cast<double>(in.q.at(i, c)), b = static_cast<double>(in.k.at(j, c));
          apart += (a - b) * (a - b), along += a * b;
        }
        distance.push_back(static_cast<double>(in.scale) * apart), dot.push_back(static_cast<double>(in.scale) * along);
      }
    }
  }
  template <class Function>
  Tensor tensor(Function f) const {
    Tensor out = Tensor::zeros({n, m});
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < m; ++j) out.ref(i, j) = static_cast<float>(f(i, j, i * m + j));
    return out;
  }
};

Tensor column(const std::vector<double>& x, bool logarithms) {
  Tensor out = Tensor::zeros({static_cast<Index>(x.size()), 1});
  for (std::size_t i = 0; i < x.size(); ++i)
    out.ref(static_cast<Index>(i), 0) = static_cast<float>(logarithms ? x[i] : std::exp(x[i]));
  return out;
}

void add_identity(MechanismResult& result, const MechanismInput& in) {
  const std::vector<double> query = half_norms(in.q, static_cast<double>(in.scale)),
                            key = half_norms(in.k, static_cast<double>(in.scale));
  const Cells cells(in);
  double worst = 0, largest = 0, least_factor = 1e300, most_factor = -1e300;
  for (Index i = 0; i < cells.n; ++i)
    for (Index j = 0; j < cells.m; ++j) {
      const Index at = i * cells.m + j;
      const double halves = nth(query, i) + nth(key, j);
      worst = std::max(worst, std::abs(std::expm1(halves - nth(cells.distance, at) / 2 - nth(cells.dot, at))));
      largest = std::max({largest, std::abs(nth(cells.dot, at)), nth(query, i), nth(key, j)});
      least_factor = std::min(least_factor, halves), most_factor = std::max(most_factor, halves);
    }
  const bool ln = largest > most_exponent;
  const auto show = [&](double exponent) { return ln ? exponent : std::exp(exponent); };
  const auto named = [&](const char* what) { return (ln ? "ln " : "") + std::string(what); };
  const auto range = ln ? MechanismStep::Range::signed_values : MechanismStep::Range::positive;
  const auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  result.steps.push_back({.id = "query-factor",
                          .title = named("e^(‖q‖²/2)"),
                          .formula = said("one for a row: softmax cancels it"),
                          .value = column(query, ln),
                          .range = range,
                          .columns = MechanismAxis::other});
  result.steps.push_back(
      {.id = "kernel",
       .title = named("K(q, k)"),
       .formula = said("exp(−‖q − k‖²/2), q and k times √scale"),
       .value = cells.tensor([&](Index, Index, Index at) { return show(-nth(cells.distance, at) / 2); }),
       .range = range,
       .masked = hidden,
       .explain = [distance = cells.distance, m = cells.m, ln](Index i, Index j) {
         const double d = nth(distance, i * m + j);
         return ln ? fmt::format("−{} ÷ 2 = {}", text(d), text(-d / 2))
                   : fmt::format("exp(−{} ÷ 2) = {}", text(d), text(std::exp(-d / 2)));
       }});
  result.steps.push_back({.id = "key-factor",
                          .title = named("e^(‖k‖²/2)"),
                          .formula = said("a bonus for long keys"),
                          .value = column(key, ln),
                          .range = range,
                          .rows = MechanismAxis::key,
                          .columns = MechanismAxis::other});
  result.steps.push_back(
      {.id = "exponential",
       .title = named("exp(q·k)"),
       .formula = said("what softmax divides by its row's sum"),
       .value = cells.tensor([&](Index, Index, Index at) { return show(nth(cells.dot, at)); }),
       .range = range,
       .masked = hidden,
       .explain = [query, key, distance = cells.distance, dot = cells.dot, m = cells.m](Index i, Index j) {
         const Index at = i * m + j;
         return fmt::format("e^{} · e^{} · e^{} = e^{}", text(nth(query, i)), text(-nth(distance, at) / 2),
                            text(nth(key, j)), text(nth(dot, at)));
       }});
  const auto [least, most] = std::ranges::minmax(key);
  result.facts = {
      {said("exp(q·k) against the product"), text(worst), said("largest relative difference over all cells, float64")},
      {said("With ‖·‖² in place of ‖·‖²/2"), say("e^{} … e^{} times too large", text(least_factor), text(most_factor)),
       said("e^((‖q‖² + ‖k‖²)/2): the ½ belongs there, though the identity is sometimes written without it")},
      {said("Bonus of the longest key"),
       most - least > most_exponent ? fmt::format("× e^{}", text(most - least))
                                    : fmt::format("× {}", text(std::exp(most - least))),
       said("e^(‖k‖²/2) of the longest key ÷ that of the shortest")}};
}

MechanismResult run_gaussian(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  check(in);
  Tensor scores = raw_scores(in);
  if (!values.on("lengths")) {
    const std::vector<double> key = half_norms(in.k, static_cast<double>(in.scale));
    for (Index i = 0; i < in.n(); ++i)
      for (Index j = 0; j < in.m(); ++j) scores.ref(i, j) -= static_cast<float>(nth(key, j));
  }
  apply_rule(*in.rule, scores);
  MechanismResult result;
  result.weights = softmax_rows(scores, in.rule.get());
  result.output = product(result.weights, in.v);
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  add_identity(result, in);
  result.steps.push_back({.id = "weights",
                          .title = said("Weights"),
                          .formula = values.on("lengths") ? said("K · e^(‖k‖²/2), each row ÷ its sum: softmax")
                                                          : said("K, each row ÷ its sum: by distance alone"),
                          .value = result.weights,
                          .range = MechanismStep::Range::probability,
                          .masked = hidden_cells(*in.rule, in.n(), in.m())});
  result.steps.push_back(output_step(result.weights, in.v, result.output, said("weights · V")));
  return result;
}

}  // namespace

Mechanism make_gaussian() {
  Mechanism m;
  m.id = "gaussian";
  m.title = to_say("Softmax is a Gaussian kernel with a bonus for long keys");
  m.name = to_say("Gaussian kernel");
  m.group = to_say("Low rank & kernel");
  m.source = "Tsai et al. 2019";
  m.formula = "exp(q·k) = e^(‖q‖²/2) K(q, k) e^(‖k‖²/2),  K = exp(−‖q − k‖²/2)";
  m.meaning = to_say(
      "Softmax compares by distance, and then counts a long key more. Without the bonus each key counts by its "
      "distance from the query alone: the difference is what the lengths of the keys do.");
  m.keywords =
      "kernel identity exponential kernel RBF radial basis Nadaraya Watson kernel smoother key norm key normalisation "
      "distance attention";
  m.parameters = {toggle_parameter("lengths", to_say("Bonus for long keys"),
                                   to_say("e^(‖k‖²/2): with it the weights are softmax's."), false)};
  m.run = run_gaussian;
  m.score_edits = ScoreEdits::all;
  m.knows_sinks = true;
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return plain_cost(s); };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    using Role = ShapeChip::Role;
    return std::vector<ShapeChip>{chip(Role::query, "Q", s.rows(), s.d),
                                  chip(Role::plain, "K(q, k)", s.rows(), s.n),
                                  {Role::key, v.on("lengths") ? "e^(‖k‖²/2)" : said("no e^(‖k‖²/2)"), "·"},
                                  chip(Role::value, "V", s.n, s.d_v, "·"),
                                  chip(Role::output, "O", s.rows(), s.d_v)};
  };
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return r.facts.size() < 3 ? ""
                              : say("The longest key has a bonus of {} over the shortest. The product of the "
                                    "three factors is exp(q·k) in every cell, up to {}.",
                                    nth(r.facts, 2).value, nth(r.facts, 0).value);
  };
  return m;
}

}  // namespace headscope::mechanism
