#include "core/attention/mechanisms/spectrum.h"

#include <Eigen/SVD>
#include <algorithm>

namespace headscope {

namespace {

Eigen::MatrixXd eigen_of(const Tensor& matrix) {
  Eigen::MatrixXd out(matrix.dim(0), matrix.dim(1));
  for (Index i = 0; i < matrix.dim(0); ++i)
    for (Index j = 0; j < matrix.dim(1); ++j) out(i, j) = static_cast<double>(matrix.at(i, j));
  return out;
}

}  // namespace

std::vector<double> singular_values(const Tensor& matrix) {
  if (matrix.size() == 0) return {};
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(eigen_of(matrix));
  return {svd.singularValues().begin(), svd.singularValues().end()};
}

int energy_rank(const std::vector<double>& singular, double share) {
  double all = 0;
  for (const double s : singular) all += s * s;
  double sum = 0;
  int rank = 0;
  while (all > 0 && sum < share * all * (1 - 1e-12) && rank < static_cast<int>(singular.size())) {
    sum += singular[static_cast<std::size_t>(rank)] * singular[static_cast<std::size_t>(rank)];
    ++rank;
  }
  return rank;
}

int numeric_rank(const std::vector<double>& singular) {
  return static_cast<int>(std::ranges::count_if(singular, [&](double s) { return s > 1e-6 * singular.front(); }));
}

Cut cut_to_rank(const Tensor& matrix, int rank) {
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(eigen_of(matrix), Eigen::ComputeThinU | Eigen::ComputeThinV);
  const auto r = std::min<Eigen::Index>(rank, svd.singularValues().size());
  const Eigen::MatrixXd low =
      svd.matrixU().leftCols(r) * svd.singularValues().head(r).asDiagonal() * svd.matrixV().leftCols(r).transpose();
  Cut cut{{svd.singularValues().begin(), svd.singularValues().end()}, Tensor::zeros(matrix.shape())};
  for (Index i = 0; i < matrix.dim(0); ++i)
    for (Index j = 0; j < matrix.dim(1); ++j) cut.matrix.ref(i, j) = static_cast<float>(low(i, j));
  return cut;
}

}  // namespace headscope
