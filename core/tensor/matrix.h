#pragma once
// Products with a fixed right-hand matrix, packed once into the layout its library likes best. Two bodies, chosen by
// the linker: matrix_onednn.cpp (oneDNN) and matrix_eigen.cpp (Eigen).

#include <memory>

#include "core/tensor/tensor.h"

namespace headscope {

class ThreadPool;

class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  /// `weight` (in, out), any strides.
  static std::shared_ptr<const PackedMatrix> pack(const Tensor& weight, ThreadPool& pool);
  /// out (rows, out) = x (rows, in) · W + bias. `x` and `out` have unit inner stride; `bias` may be null.
  /// Tiles of rows × columns are handed to `pool`; the result does not depend on which thread took which tile.
  virtual void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) const = 0;
  virtual Index in() const = 0;
  virtual Index out() const = 0;
};

/// "oneDNN 2.6.3" or "Eigen 3.4.0"
const char* matrix_library();

}  // namespace headscope
