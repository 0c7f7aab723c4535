#pragma once
// Products with a fixed right-hand matrix, packed once into panels (core/tensor/panels.h): small ones, that stay in a
// core's cache, whole; large ones by blocks that do, or as they are stored where they are not f32 (stored_matrix.h).

#include <memory>
#include <span>

#include "core/tensor/tensor.h"

namespace headscope {

class ThreadPool;

class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  /// Up to here a matrix stays in one core's second-level cache.
  static constexpr std::size_t small_bytes = std::size_t{1} << 20;
  /// The matrices of `parts`, (in, out_i) with any strides, side by side as one (in, Σ out_i). `small`: bytes as
  /// float32 up to which it is packed as that, in panels; a larger one is multiplied as it is stored, where it can be.
  static std::shared_ptr<const PackedMatrix> pack(std::span<const Tensor> parts, ThreadPool& pool,
                                                  std::size_t small = small_bytes);

  /// out (rows, out) = x (rows, in) · W + bias. Both have unit inner stride; `bias` (out) may be null.
  /// Tiles go to whichever thread is free; the result does not depend on which took which.
  virtual void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) const = 0;
  /// Whether multiply_rows may be called: for matrices that stay in one core's cache.
  virtual bool by_rows() const { return false; }
  /// The same for rows [begin, end) only, on this thread; the same bits.
  virtual void multiply_rows(const Tensor& x, const float* bias, Tensor& out, Index begin, Index end) const;
  /// That a product reads.
  virtual std::size_t bytes() const = 0;
  virtual Index in() const = 0;
  virtual Index out() const = 0;
};

/// Those of f32 that are not small.
std::shared_ptr<const PackedMatrix> pack_large(std::span<const Tensor> parts, ThreadPool& pool);

}  // namespace headscope
