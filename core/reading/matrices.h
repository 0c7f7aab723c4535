#pragma once
// Tensors as Eigen matrices, for the linear algebra of circuits. Private to core/reading.

#include <Eigen/Core>

#include "core/tensor/tensor.h"

namespace headscope {

template <class Scalar>
using RowMajor = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A copy; any strides.
template <class Scalar = double>
RowMajor<Scalar> matrix_of(const Tensor& t) {
  RowMajor<Scalar> out(t.dim(0), t.dim(1));
  for (Index i = 0; i < t.dim(0); ++i)
    for (Index j = 0; j < t.dim(1); ++j) out(i, j) = static_cast<Scalar>(t.at(i, j));
  return out;
}

inline Eigen::VectorXd vector_of(const Tensor& t) {
  Eigen::VectorXd out(t.dim(0));
  for (Index i = 0; i < t.dim(0); ++i) out(i) = static_cast<double>(t.at(i));
  return out;
}

}  // namespace headscope
