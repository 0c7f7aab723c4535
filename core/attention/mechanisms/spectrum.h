#pragma once
// Singular values of a matrix of weights, and what rank it takes to hold most of it.

#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

/// Descending, computed in double.
std::vector<double> singular_values(const Tensor& matrix);
/// The same, with the nearest matrix of rank r in the sense of squares (Eckart & Young 1936).
struct Cut {
  std::vector<double> singular;
  Tensor matrix;
};
Cut cut_to_rank(const Tensor& matrix, int rank);
/// Fewest singular values whose squares sum to `share` of all squares; 0 for a zero matrix.
/// REQUIRES share ≤ 1.
int energy_rank(const std::vector<double>& singular, double share);
/// How many exceed the largest times 10⁻⁶, float32's rounding over a row.
int numeric_rank(const std::vector<double>& singular);

}  // namespace headscope
