#pragma once
// Tensors as Eigen matrices and back. Private to core: no public header shows Eigen.

#include <Eigen/Core>

#include "core/tensor/tensor.h"

namespace headscope {

template <class Scalar>
using RowMajor = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A copy; any strides and kind of numbers.
template <class Scalar = double>
RowMajor<Scalar> matrix_of(const Tensor& given) {
  const Tensor t = given.floats();
  RowMajor<Scalar> out(t.dim(0), t.dim(1));
  for (Index i = 0; i < t.dim(0); ++i)
    for (Index j = 0; j < t.dim(1); ++j) out(i, j) = static_cast<Scalar>(t.at(i, j));
  return out;
}

/// Rounded to float.
inline Tensor tensor_of(const Eigen::MatrixXd& m) {
  Tensor out = Tensor::uninitialized({m.rows(), m.cols()});
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j) out.ref(i, j) = static_cast<float>(m(i, j));
  return out;
}

inline Eigen::VectorXd vector_of(const Tensor& t) {
  Eigen::VectorXd out(t.dim(0));
  for (Index i = 0; i < t.dim(0); ++i) out(i) = static_cast<double>(t.at(i));
  return out;
}

}  // namespace headscope
