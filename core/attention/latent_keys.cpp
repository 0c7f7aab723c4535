#include "core/attention/latent_keys.h"

#include <algorithm>
#include <cmath>

#include "core/tensor/decompositions.h"
#include "core/tensor/matrices.h"

namespace headscope {

LatentFactors factor_keys(const Tensor& w_k, const Tensor& w_v, int rank) {
  const Index rows = w_k.dim(0), k = w_k.dim(1), v = w_v.dim(1);
  Eigen::MatrixXd w(rows, k + v);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < k; ++j) w(i, j) = static_cast<double>(w_k.at(i, j));
    for (Index j = 0; j < v; ++j) w(i, k + j) = static_cast<double>(w_v.at(i, j));
  }
  // W W^T = U Σ² U^T: of the left singular vectors alone, which is all that W_r = U_r U_r^T W needs.
  const SymmetricEigen eigen = symmetric_eigen(w * w.transpose());
  const Index full = std::min(rows, k + v), kept = std::min<Index>(rank, full);
  LatentFactors factors;
  double all = 0, lost = 0;
  for (Index i = 0; i < full; ++i) {  // eigenvalues rise
    const double square = std::max(eigen.values(rows - 1 - i), 0.0);
    factors.singular.push_back(std::sqrt(square));
    all += square;
    if (i >= kept) lost += square;
  }
  factors.error = all > 0 ? std::sqrt(lost / all) : 0;
  const Eigen::MatrixXd u = eigen.vectors.rightCols(kept).rowwise().reverse();
  const Eigen::MatrixXd up = u.transpose() * w;
  factors.down = tensor_of(u);
  factors.up_k = tensor_of(up.leftCols(k));
  factors.up_v = tensor_of(up.rightCols(v));
  return factors;
}

}  // namespace headscope
