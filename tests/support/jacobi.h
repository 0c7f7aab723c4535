#pragma once
// A singular value decomposition that owes nothing to the library's: one-sided Jacobi (Hestenes 1958). Columns of the
// tall side are turned against each other until all are orthogonal; their lengths are the singular values.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope::testing {

struct Parts {
  std::vector<double> values;             // descending
  std::vector<std::vector<double>> u, v;  // by value
  Index in = 0, out = 0;
  /// Σ z σ u vᵀ
  Tensor scaled(const std::vector<double>& z) const {
    Tensor w = Tensor::zeros({in, out});
    for (Index i = 0; i < in; ++i)
      for (Index j = 0; j < out; ++j) {
        double sum = 0;
        for (std::size_t r = 0; r < values.size(); ++r)
          sum += z[r] * values[r] * u[r][static_cast<std::size_t>(i)] * v[r][static_cast<std::size_t>(j)];
        w.ref(i, j) = static_cast<float>(sum);
      }
    return w;
  }
};

inline Parts jacobi(const Tensor& w) {
  const bool flip = w.dim(0) < w.dim(1);
  const auto rows = static_cast<std::size_t>(std::max(w.dim(0), w.dim(1))),
             count = static_cast<std::size_t>(std::min(w.dim(0), w.dim(1)));
  std::vector<std::vector<double>> a(count, std::vector<double>(rows)), v(count, std::vector<double>(count, 0.0));
  for (std::size_t c = 0; c < count; ++c) {
    v[c][c] = 1;
    for (std::size_t r = 0; r < rows; ++r)
      a[c][r] = static_cast<double>(flip ? w.at(static_cast<Index>(c), static_cast<Index>(r))
                                         : w.at(static_cast<Index>(r), static_cast<Index>(c)));
  }
  for (int sweep = 0; sweep < 60; ++sweep)
    for (std::size_t p = 0; p < count; ++p)
      for (std::size_t q = p + 1; q < count; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (std::size_t r = 0; r < rows; ++r)
          pp += a[p][r] * a[p][r], qq += a[q][r] * a[q][r], pq += a[p][r] * a[q][r];
        if (std::abs(pq) < 1e-300) continue;
        const double zeta = (qq - pp) / (2 * pq),
                     t = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)),
                     cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
        for (auto* side : {&a, &v})
          for (std::size_t r = 0; r < (*side)[p].size(); ++r) {
            const double x = (*side)[p][r], y = (*side)[q][r];
            (*side)[p][r] = cosine * x - sine * y;
            (*side)[q][r] = sine * x + cosine * y;
          }
      }
  std::vector<double> length(count);
  for (std::size_t c = 0; c < count; ++c)
    length[c] = std::sqrt(std::inner_product(a[c].begin(), a[c].end(), a[c].begin(), 0.0));
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, std::ranges::greater{}, [&](std::size_t c) { return length[c]; });
  Parts parts;
  parts.in = w.dim(0), parts.out = w.dim(1);
  for (const std::size_t c : order) {
    for (double& each : a[c]) each = length[c] > 0 ? each / length[c] : 0;
    parts.values.push_back(length[c]);
    parts.u.push_back(flip ? v[c] : a[c]);
    parts.v.push_back(flip ? a[c] : v[c]);
  }
  return parts;
}

}  // namespace headscope::testing
