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

namespace {

/// Which parts a scaled matrix is put together of: either what is taken away from W or what is left of nothing,
/// whichever has fewer.
struct Chosen {
  double base = 0;  // of W
  std::vector<Eigen::Index> parts;
  Eigen::VectorXd factors;
};

Chosen chosen_of(std::span<const double> z) {
  const auto off = std::ranges::count_if(z, [](double each) { return each != 1; }),
             on = std::ranges::count_if(z, [](double each) { return each != 0; });
  Chosen out;
  out.base = off <= on ? 1 : 0;
  out.factors.resize(std::min(off, on));
  for (std::size_t i = 0; i < z.size(); ++i) {
    if (z[i] == out.base) continue;
    out.factors(static_cast<Eigen::Index>(out.parts.size())) = z[i] - out.base;
    out.parts.push_back(static_cast<Eigen::Index>(i));
  }
  return out;
}

/// u_iᵀ W a row each, or from the right W v_i a column each.
MatrixXd shares_of(const RowMajor<double>& w, const MatrixXd& directions, bool of_rows) {
  return of_rows ? MatrixXd(directions.transpose() * w) : MatrixXd(w * directions);
}

/// W base + Σ factor_i u_i (u_iᵀ W), of the chosen directions and shares alone.
Tensor put_together(const RowMajor<double>& w, const Chosen& chosen, const MatrixXd& directions, const MatrixXd& shares,
                    bool of_rows) {
  const MatrixXd scaled = directions * chosen.factors.asDiagonal();
  return tensor_of(of_rows ? MatrixXd(chosen.base * w + scaled * shares)
                           : MatrixXd(chosen.base * w + shares * scaled.transpose()));
}

}  // namespace

Tensor scaled_singular(const Tensor& w, const SingularDirections& of, std::span<const double> z) {
  assert(z.size() == of.values.size());
  const Chosen chosen = chosen_of(z);
  const RowMajor<double> m = matrix_of(w);
  if (chosen.parts.empty()) return tensor_of(chosen.base * m);
  const MatrixXd directions = matrix_of(of.directions)(Eigen::all, chosen.parts);
  return put_together(m, chosen, directions, shares_of(m, directions, of.of_rows), of.of_rows);
}

struct SingularParts::Shares {
  MatrixXd of_w;
};

SingularParts::SingularParts(const Tensor& w)
    : w_(w),
      of_(singular_directions(w)),
      shares_(std::make_shared<Shares>(Shares{shares_of(matrix_of(w), matrix_of(of_.directions), of_.of_rows)})) {}

Tensor SingularParts::scaled(std::span<const double> z) const {
  assert(z.size() == count());
  const Chosen chosen = chosen_of(z);
  const RowMajor<double> m = matrix_of(w_);
  if (chosen.parts.empty()) return tensor_of(chosen.base * m);
  const MatrixXd directions = matrix_of(of_.directions)(Eigen::all, chosen.parts), &all = shares_->of_w;
  return put_together(m, chosen, directions,
                      of_.of_rows ? MatrixXd(all(chosen.parts, Eigen::all)) : MatrixXd(all(Eigen::all, chosen.parts)),
                      of_.of_rows);
}

std::vector<double> SingularParts::slopes(const Tensor& gradient) const {
  // With σ_i u_i v_iᵀ = u_i u_iᵀ W: ⟨G, u_i u_iᵀ W⟩ = (u_iᵀ G) · (u_iᵀ W); from the right likewise.
  const MatrixXd both =
      shares_of(matrix_of(gradient), matrix_of(of_.directions), of_.of_rows).cwiseProduct(shares_->of_w);
  const Eigen::VectorXd dz =
      of_.of_rows ? Eigen::VectorXd(both.rowwise().sum()) : Eigen::VectorXd(both.colwise().sum().transpose());
  return {dz.begin(), dz.end()};
}

}  // namespace headscope
