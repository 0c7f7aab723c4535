#include "core/attention/mechanisms/spectrum.h"

#include <algorithm>

#include "core/base/nth.h"
#include "core/tensor/decompositions.h"
#include "core/tensor/matrices.h"

namespace headscope {

std::vector<double> singular_values(const Tensor& matrix) {
  if (matrix.size() == 0) return {};
  const Eigen::VectorXd sigma = singular_values_of(matrix_of(matrix));
  return {sigma.begin(), sigma.end()};
}

int energy_rank(const std::vector<double>& singular, double share) {
  double all = 0;
  for (const double s : singular) all += s * s;
  double sum = 0;
  int rank = 0;
  while (sum < share * all * (1 - 1e-12)) {
    sum += nth(singular, rank) * nth(singular, rank);
    ++rank;
  }
  return rank;
}

int numeric_rank(const std::vector<double>& singular) {
  return static_cast<int>(std::ranges::count_if(singular, [&](double s) { return s > 1e-6 * singular.front(); }));
}

Cut cut_to_rank(const Tensor& matrix, int rank) {
  const auto [u, sigma, v] = singular_value_decomposition(matrix_of(matrix));
  const auto r = std::min<Eigen::Index>(rank, sigma.size());
  return {{sigma.begin(), sigma.end()},
          tensor_of(u.leftCols(r) * sigma.head(r).asDiagonal() * v.leftCols(r).transpose())};
}

}  // namespace headscope
