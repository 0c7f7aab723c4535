#include "core/attention/mechanism_math.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/special_values.h"
#include "core/base/thread_pool.h"
#include "core/base/words.h"
#include "core/tensor/products.h"

namespace headscope::mechanism {

namespace {

// Longer sums are told by their largest terms.
constexpr Index most_terms = 6, told_terms = 4;

Tensor multiplied(const Tensor& a, const Tensor& b, Index rows, Index columns) {
  Tensor out = Tensor::zeros({rows, columns});
  if (rows == 0 || columns == 0 || a.dim(1) == 0) return out;
  ThreadPool here(1);  // one head on one thread: what the measured times are of
  const Product job{a, b, {}, out, false};
  multiply(std::span(&job, 1), here);
  return out;
}

}  // namespace

Tensor product(const Tensor& a, const Tensor& b) {
  assert(a.dim(1) == b.dim(0));
  return multiplied(a, b, a.dim(0), b.dim(1));
}

Tensor product_t(const Tensor& a, const Tensor& b) {
  assert(a.dim(1) == b.dim(1));
  return multiplied(a, b.transpose(0, 1), a.dim(0), b.dim(0));
}

Tensor times(const Tensor& x, float factor) {
  return each(x, [factor](float value) { return factor * value; });
}

Tensor minus(const Tensor& a, const Tensor& b) {
  assert(a.shape() == b.shape());
  Tensor out = a.copy();
  const Tensor other = b.packed();
  for (std::size_t i = 0; i < out.values().size(); ++i) out.mutable_values()[i] -= other.values()[i];
  return out;
}

Tensor plus(const Tensor& a, const Tensor& b) {
  assert(a.shape() == b.shape());
  Tensor out = a.copy();
  const Tensor other = b.packed();
  for (std::size_t i = 0; i < out.values().size(); ++i) out.mutable_values()[i] += other.values()[i];
  return out;
}

double norm(const Tensor& x) {
  double sum = 0;
  for (const float value : x.packed().values()) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

Tensor gaussian(Index rows, Index columns, std::uint64_t seed) {
  Tensor out = Tensor::uninitialized({rows, columns});
  Random random(seed);
  for (float& value : out.mutable_values()) value = random.normal();
  return out;
}

std::string scores_text(const MechanismInput& in, std::string_view keys) {
  if (in.scale == 1) return fmt::format("Q {}", keys);
  const double root = std::sqrt(static_cast<double>(in.d()));
  if (std::abs(static_cast<double>(in.scale) * root - 1) < 1e-5) return fmt::format("Q {} ÷ √d", keys);
  return fmt::format("{:.4g} · Q {}", in.scale, keys);
}

Tensor raw_scores(const MechanismInput& in) {
  return times(product_t(in.q, in.k), in.scale);
}

void apply_rule(const AttentionRule& rule, Tensor& scores, Index first) {
  const Index n = scores.dim(0), m = scores.dim(1);
  for (Index i = 0; i < n; ++i) {
    float* const row = &scores.ref(i, 0);
    const KeyRange keys = rule.keys(first + i, m);
    std::fill(row, row + std::min(keys.begin, m), -float_infinity);
    std::fill(row + std::max(keys.end, keys.begin), row + m, -float_infinity);
    if (!rule.plain() && keys.size() > 0)
      rule.apply(first + i, keys.begin, {row + keys.begin, static_cast<std::size_t>(keys.size())});
  }
}

RowScores row_scores(const MechanismInput& in, double place) {
  RowScores out;
  out.row = std::min(static_cast<Index>(std::lround(place * static_cast<double>(in.n() - 1))), in.n() - 1);
  out.plain = times(product_t(in.q.slice(0, out.row, out.row + 1).copy(), in.k), in.scale);
  out.scores = out.plain.copy();
  apply_rule(*in.rule, out.scores, out.row);
  for (const float score : out.scores.values()) out.hidden.push_back(score == -float_infinity);
  out.sink = in.rule->sink(out.row);
  return out;
}

Tensor shown_scores(const RowScores& row, double sharpness) {
  Tensor out = times(row.scores, static_cast<float>(sharpness));
  hide(row.hidden, out);
  return out;
}

Tensor row_weights(const RowScores& row, double sharpness) {
  Tensor weights = times(row.scores, static_cast<float>(sharpness));
  softmax_row(weights.mutable_values(), row.sink);
  return weights;
}

double row_gradient(const RowScores& row, double sharpness) {
  double against = 1;  // the sum of the row ÷ e^sink
  for (const float score : row.scores.values())
    against += std::exp(sharpness * static_cast<double>(score) - static_cast<double>(row.sink));
  return softmax_gradient(row_weights(row, sharpness), std::isfinite(row.sink) ? 1 / against : 0);
}

std::string row_sum_text(const RowScores& row) {
  return std::isfinite(row.sink) ? fmt::format("(Σ e^score + e^{})", text(row.sink)) : "Σ e^score";
}

MechanismInput first_tokens(const MechanismInput& in, Index most) {
  MechanismInput out = in;
  const Index n = std::min(in.n(), most), m = std::min(in.m(), most);
  if (n < in.n()) out.q = in.q.slice(0, 0, n).copy();
  if (m < in.m()) out.k = in.k.slice(0, 0, m).copy(), out.v = in.v.slice(0, 0, m).copy();
  return out;
}

std::vector<std::uint8_t> hidden_cells(const AttentionRule& rule, Index n, Index m) {
  if (is_full(rule, n, m)) return {};
  Tensor zeros = Tensor::zeros({n, m});
  apply_rule(rule, zeros);
  std::vector<std::uint8_t> hidden;
  hidden.reserve(static_cast<std::size_t>(n * m));
  for (const float value : zeros.values()) hidden.push_back(value == -float_infinity);
  return hidden;
}

Tensor unit_rows(const Tensor& x) {
  Tensor out = x.copy();
  for (Index i = 0; i < x.dim(0); ++i) {
    double sum = 0;
    for (Index c = 0; c < x.dim(1); ++c) sum += static_cast<double>(x.at(i, c)) * static_cast<double>(x.at(i, c));
    const auto factor = static_cast<float>(sum > 0 ? 1 / std::sqrt(sum) : 0);
    for (Index c = 0; c < x.dim(1); ++c) out.ref(i, c) *= factor;
  }
  return out;
}

float one_plus_elu(float x) {
  return x > 0 ? 1 + x : std::exp(x);
}

float silu(float x) {
  return x / (1 + std::exp(-x));
}

double mean_entropy(const Tensor& weights) {
  double total = 0;
  Index rows = 0;
  for (Index i = 0; i < weights.dim(0); ++i) {
    double sum = 0, entropy = 0;
    for (Index j = 0; j < weights.dim(1); ++j) {
      if (weights.at(i, j) < 0) return std::numeric_limits<double>::quiet_NaN();
      sum += static_cast<double>(weights.at(i, j));
    }
    if (sum <= 0) continue;
    for (Index j = 0; j < weights.dim(1); ++j)
      if (const double p = static_cast<double>(weights.at(i, j)) / sum; p > 0) entropy -= p * std::log(p);
    total += entropy;
    ++rows;
  }
  return rows > 0 ? total / static_cast<double>(rows) : 0;
}

double softmax_gradient(const Tensor& p, double sink) {
  // Σᵢⱼ (δᵢⱼ pᵢ − pᵢ pⱼ)² = Σᵢ pᵢ² ((1 − pᵢ)² + Σ_{j≠i} pⱼ²), a sum of what is positive: nothing cancels. Of the
  // largest, 1 − p is what the others sum to, whose digits float32's p near 1 has lost.
  const auto values = p.values();
  const auto top = static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
  double others = sink, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == top) continue;
    const auto x = static_cast<double>(values[i]);
    others += x, squares += x * x;
  }
  if (values.empty()) return 0;
  const auto most = static_cast<double>(values[top]);
  double sum = most * most * (others * others + squares);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == top) continue;
    const auto x = static_cast<double>(values[i]);
    sum += x * x * ((1 - x) * (1 - x) + most * most + squares - x * x);
  }
  return std::sqrt(sum);
}

void hide(const std::vector<std::uint8_t>& hidden, Tensor& cells) {
  if (hidden.empty()) return;
  const auto values = cells.mutable_values();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (hidden[i]) values[i] = 0;
}

Tensor softmax_rows(Tensor scores, const AttentionRule* rule, Index first) {
  for (Index i = 0; i < scores.dim(0); ++i)
    softmax_row({&scores.ref(i, 0), static_cast<std::size_t>(scores.dim(1))}, rule ? rule->sink(first + i) : no_sink);
  return scores;
}

void check(const MechanismInput& in) {
  if (in.stop.stop_requested()) throw Cancelled();
}

void need_causal(const MechanismInput& in, std::string_view id) {
  if (in.n() != in.m() || !is_causal(*in.rule, in.n(), in.m()))
    throw Error(fmt::format("mechanism {}", id), "the causal mask, as many queries as keys",
                fmt::format("{}, {} queries, {} keys", in.rule->describe(), in.n(), in.m()),
                "it runs from the first token to the last");
}

std::string text(double value) {
  if (std::isinf(value)) return value < 0 ? "−∞" : "∞";
  std::string out = fmt::format("{:.3g}", value);
  if (!out.empty() && out[0] == '-') out = "−" + out.substr(1);
  return out;
}

std::string brief(double value, bool decimals) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size >= 100000) return text(value);
  std::string out;
  if (size == std::floor(size) && (!decimals || size == 0))
    out = fmt::format("{:.0f}", size);
  else if (size < 0.095)
    out = size < 1e-4 ? fmt::format("{:.1e}", size) : fmt::format("{:#.2g}", size);
  else
    out = fmt::format("{:.{}f}", size, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  return value < 0 ? "−" + out : out;
}

std::string sum_text(Index terms, const std::function<std::pair<double, double>(Index)>& term, double factor) {
  std::vector<Index> order(static_cast<std::size_t>(terms));
  std::iota(order.begin(), order.end(), Index{0});
  double sum = 0;
  bool whole = factor == std::floor(factor);
  for (Index c = 0; c < terms; ++c) {
    const auto [a, b] = term(c);
    sum += a * b;
    whole = whole && a == std::floor(a) && b == std::floor(b);
  }
  const bool all = terms <= most_terms;
  if (!all)
    std::ranges::stable_sort(order, std::greater{}, [&](Index c) {
      const auto [a, b] = term(c);
      return std::abs(a * b);
    });
  std::string out;
  for (Index i = 0; i < (all ? terms : told_terms); ++i) {
    const auto [a, b] = term(nth(order, i));
    out += (i ? " + " : "") + brief(a) + "·" + brief(b);
  }
  if (!all) out += say(" + {} smaller", terms - told_terms);
  if (factor != 1) out = brief(factor) + " · (" + out + ")";
  return out + " = " + brief(factor * sum, !whole);
}

std::function<std::string(Index, Index)> explain_product(Tensor a, Tensor b, double factor) {
  return [a = std::move(a), b = std::move(b), factor](Index i, Index j) {
    return sum_text(
        a.dim(1),
        [&](Index c) {
          return std::pair{static_cast<double>(a.at(i, c)), static_cast<double>(b.at(c, j))};
        },
        factor);
  };
}

std::function<std::string(Index, Index)> explain_product_t(Tensor a, Tensor b, double factor) {
  return explain_product(std::move(a), b.transpose(0, 1), factor);
}

MechanismStep given(std::string id, std::string title, Tensor value, MechanismAxis rows) {
  MechanismStep step;
  step.id = std::move(id);
  step.title = std::move(title);
  step.formula = said("given");
  step.value = std::move(value);
  step.rows = rows;
  step.columns = MechanismAxis::dimension;
  return step;
}

void add_inputs(std::vector<MechanismStep>& steps, const MechanismInput& in) {
  steps.push_back(given("q", "Q", in.q, MechanismAxis::query));
  steps.push_back(given("k", "K", in.k, MechanismAxis::key));
  steps.push_back(given("v", "V", in.v, MechanismAxis::key));
}

MechanismStep output_step(const Tensor& weights, const Tensor& v, const Tensor& output, std::string formula) {
  MechanismStep step;
  step.id = "output";
  step.title = said("Output O");
  step.formula = std::move(formula);
  step.value = output;
  step.columns = MechanismAxis::dimension;
  step.mixture = true;
  if (weights.defined()) step.explain = explain_product(weights, v);
  return step;
}

ShapeChip chip(ShapeChip::Role role, std::string_view text, Index rows, Index columns, std::string before) {
  return {role, fmt::format("{} {}×{}", text, rows, columns), std::move(before)};
}

MechanismCost plain_cost(const MechanismShape& s) {
  const auto n = static_cast<double>(s.n), width = static_cast<double>(s.d + s.d_v);
  // Scores written and read, weights written and read, Q, K, V read, O written (Dao et al. 2022, Theorem 2's standard
  // form).
  return {n * n * width, 0, cache_of(s), 4 * (n * (width + static_cast<double>(s.d + s.d_v)) + 4 * n * n)};
}

}  // namespace headscope::mechanism
