#include "core/tensor/singular.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "core/tensor/decompositions.h"
#include "core/tensor/matrices.h"

namespace headscope {

using Eigen::MatrixXd;

SingularDirections singular_directions(const Tensor& w) {
  SingularDirections out;
  out.of_rows = w.dim(0) <= w.dim(1);
  const MatrixXd m = matrix_of(w);
  const MatrixXd found =
      symmetric_eigen(out.of_rows ? MatrixXd(m * m.transpose()) : MatrixXd(m.transpose() * m)).vectors;
  // σ_i = ‖u_iᵀ W‖: the root of an eigenvalue would lose half of the digits of a small one.
  const Eigen::VectorXd norms = out.of_rows ? Eigen::VectorXd((found.transpose() * m).rowwise().norm())
                                            : Eigen::VectorXd((m * found).colwise().norm().transpose());
  std::vector<Eigen::Index> order(static_cast<std::size_t>(norms.size()));
  std::iota(order.begin(), order.end(), Eigen::Index{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](Eigen::Index i) { return norms(i); });
  MatrixXd sorted(found.rows(), found.cols());
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.col(static_cast<Eigen::Index>(i)) = found.col(order[i]);
    out.values.push_back(norms(order[i]));
  }
  out.directions = tensor_of(sorted);
  return out;
}

Tensor scaled_singular(const Tensor& w, const SingularDirections& of, std::span<const double> z) {
  assert(z.size() == of.values.size());
  // Either what is taken away from w or what is left of nothing, whichever has fewer parts.
  const auto off = std::ranges::count_if(z, [](double each) { return each != 1; }),
             on = std::ranges::count_if(z, [](double each) { return each != 0; });
  const bool from_w = off <= on;
  const double base = from_w ? 1 : 0;
  const auto parts = static_cast<Eigen::Index>(from_w ? off : on);
  const MatrixXd m = matrix_of(w);
  if (parts == 0) return tensor_of(base * m);
  MatrixXd chosen(of.directions.dim(0), parts);
  Eigen::VectorXd factor(parts);
  for (std::size_t i = 0, part = 0; i < z.size(); ++i) {
    if (z[i] == base) continue;
    const auto column = static_cast<Eigen::Index>(part++);
    factor(column) = z[i] - base;
    for (Index row = 0; row < chosen.rows(); ++row)
      chosen(row, column) = static_cast<double>(of.directions.at(row, static_cast<Index>(i)));
  }
  const MatrixXd scaled = chosen * factor.asDiagonal();
  return tensor_of(of.of_rows ? MatrixXd(base * m + scaled * (chosen.transpose() * m))
                              : MatrixXd(base * m + (m * chosen) * scaled.transpose()));
}

}  // namespace headscope
