#include "core/analysis/alternatives.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/metrics/even_head.h"
#include "core/tensor/decompositions.h"
#include "core/tensor/matrices.h"

namespace headscope {

namespace {
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The part of the objective's gradient that the values leave free, over the free keys; and, for the others, what they
/// would gain if they were let go.
struct LeftFree {
  VectorXd direction;  // (all keys), 0 where fixed
  VectorXd gain;       // (all keys)
  Index dimension = 0;
};

LeftFree project(const MatrixXd& values, const VectorXd& gradient, const std::vector<bool>& fixed, double tolerance) {
  const Index n = values.rows(), d = values.cols();
  std::vector<Index> free;
  for (Index j = 0; j < n; ++j)
    if (!nth(fixed, j)) free.push_back(j);
  const auto m = static_cast<Index>(free.size());
  MatrixXd centred(m, d);
  VectorXd g(m);
  for (Index i = 0; i < m; ++i) centred.row(i) = values.row(nth(free, i)), g(i) = gradient(nth(free, i));
  const Eigen::RowVectorXd mean = centred.colwise().mean();
  centred.rowwise() -= mean;
  const double g_mean = g.mean();
  const auto [u, sigma, v] = singular_value_decomposition(centred);
  Index rank = 0;
  while (rank < sigma.size() && sigma(rank) > tolerance * sigma(0)) ++rank;
  // Least squares of the gradient by the centred values and a constant; what is left over is free.
  const VectorXd inside = u.leftCols(rank).transpose() * (g.array() - g_mean).matrix();
  const VectorXd left = (g.array() - g_mean).matrix() - u.leftCols(rank) * inside;
  const VectorXd slope = v.leftCols(rank) * inside.cwiseQuotient(sigma.head(rank));  // (d): of the fitted plane
  LeftFree out;
  out.direction = VectorXd::Zero(n);
  for (Index i = 0; i < m; ++i) out.direction(nth(free, i)) = left(i);
  out.gain = gradient - ((values.rowwise() - mean) * slope) - VectorXd::Constant(n, g_mean);
  out.dimension = std::max<Index>(0, m - 1 - rank);
  return out;
}

std::vector<double> list(const VectorXd& v) {
  return {v.data(), v.data() + v.size()};
}
}  // namespace

std::vector<double> Alternatives::at(double share) const {
  if (corners.size() < 2) return weights;
  const double want = std::clamp(share, 0.0, 1.0) * lengths.back();
  std::size_t i = 1;
  while (i + 1 < corners.size() && lengths[i] < want) ++i;
  const double step = lengths[i] - lengths[i - 1],
               t = step > 0 ? std::clamp((want - lengths[i - 1]) / step, 0.0, 1.0) : 1;
  std::vector<double> out;
  for (std::size_t j = 0; j < weights.size(); ++j) out.push_back((1 - t) * corners[i - 1][j] + t * corners[i][j]);
  return out;
}

Alternatives find_alternatives(const Trace& trace, HeadId head, Index query, Index key, double tolerance,
                               std::stop_token stop) {
  const AttentionMap& map = trace.map(head);
  Alternatives out;
  out.head = head;
  out.query = position_of(trace, query, "alternatives: row");
  const KeyRange seen = visible_range(map, out.query);
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  map.row(out.query, row);
  double sum = 0;
  for (Index j = seen.begin; j < seen.end; ++j) sum += static_cast<double>(nth(row, j));
  if (seen.begin != 0 || seen.size() < 1 || !(sum > 0))
    throw Error("alternatives", "a row that looks at keys from the first token on", "one that does not");
  for (Index j = 0; j < seen.end; ++j) out.weights.push_back(static_cast<double>(nth(row, j)));
  const auto n = static_cast<Index>(out.weights.size());
  out.key = key >= 0 ? key : std::ranges::max_element(out.weights) - out.weights.begin();
  if (out.key >= n)
    throw Error("alternatives: key",
                "a key that row " + std::to_string(out.query) + " may see, 0 to " + std::to_string(n - 1),
                std::to_string(key));
  out.values = need(trace, {SiteKind::v, head.layer}).select(1, map.place().kv_head).slice(0, 0, n);

  const MatrixXd values = matrix_of(out.values);
  VectorXd weights = Eigen::Map<const VectorXd>(out.weights.data(), n);
  VectorXd gradient = VectorXd::Zero(n);
  gradient(out.key) = -1;
  std::vector<bool> fixed(static_cast<std::size_t>(n), false);
  out.corners = {out.weights};
  out.lengths = {0};
  constexpr double small = 1e-9;
  for (Index round = 0; round < 8 * n + 16; ++round) {
    if (stop.stop_requested()) throw Cancelled();
    const LeftFree p = project(values, gradient, fixed, tolerance);
    if (round == 0) out.free = p.dimension;
    if (p.direction.cwiseAbs().maxCoeff() < small) {
      // A vertex of what is left: let go of the key that would gain most, or be done.
      Index best = -1;
      for (Index j = 0; j < n; ++j)
        if (nth(fixed, j) && p.gain(j) > 1e-7 && (best < 0 || p.gain(j) > p.gain(best))) best = j;
      if (best < 0) break;
      nth(fixed, best) = false;
      continue;
    }
    double step = std::numeric_limits<double>::infinity();
    Index blocked = -1;
    for (Index j = 0; j < n; ++j)
      if (p.direction(j) < -1e-14 && weights(j) / -p.direction(j) < step)
        step = weights(j) / -p.direction(j), blocked = j;
    if (blocked < 0) break;
    weights = (weights + step * p.direction).cwiseMax(0);
    weights(blocked) = 0;
    nth(fixed, blocked) = true;
    if (const double moved = 0.5 * step * p.direction.cwiseAbs().sum(); moved > 1e-12) {
      out.corners.push_back(list(weights));
      out.lengths.push_back(out.lengths.back() + moved);
    }
    if (weights(out.key) <= 0) break;
  }
  return out;
}

RowDifference row_difference(const Tensor& values, const std::vector<double>& before,
                             const std::vector<double>& after) {
  RowDifference out;
  const auto part = [](double p, double q) { return p > 0 ? p * std::log(p / q) : 0; };
  for (std::size_t j = 0; j < before.size(); ++j) {
    const double p = before[j], q = after[j], m = 0.5 * (p + q);
    out.variation += 0.5 * std::abs(p - q);
    if (m > 0) out.divergence += 0.5 * (part(p, m) + part(q, m));
  }
  double change = 0, size = 0;
  for (Index d = 0; d < values.dim(1); ++d) {
    double z = 0, moved = 0;
    for (std::size_t j = 0; j < before.size(); ++j) {
      const auto v = static_cast<double>(values.at(static_cast<Index>(j), d));
      z += before[j] * v;
      moved += (after[j] - before[j]) * v;
    }
    size += z * z;
    change += moved * moved;
  }
  out.output = size > 0 ? std::sqrt(change / size) : 0;
  return out;
}

std::vector<double> naive_shift(const std::vector<double>& weights, Index key, double variation) {
  std::vector<double> out = weights;
  double& own = nth(out, key);
  const double rest = std::accumulate(out.begin(), out.end(), -own), given = std::min(variation, own);
  if (rest <= 0) return out;
  for (std::size_t j = 0; j < out.size(); ++j)
    if (static_cast<Index>(j) != key) out[j] *= (rest + given) / rest;
  own -= given;
  return out;
}

}  // namespace headscope
