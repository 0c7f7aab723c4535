#pragma once
// The ops of a forward pass. The base class is the CPU; another device overrides what it does better. Ops take and
// return whole tensors (values), so a tape can record them and a tap can replace what flows between them. Shapes: rows
// are positions. Thread rule: one pass at a time per Backend (the pool serialises its callers).

#include <memory>
#include <string>

#include "core/base/thread_pool.h"
#include "core/tensor/matrix.h"
#include "core/tensor/tensor.h"

namespace headscope {

/// A weight matrix ready to multiply with, (in, out), and its bias.
struct Linear {
  Tensor weight;  ///< (in, out) view of the stored weights, kept for reading (mapped where possible)
  std::shared_ptr<const PackedMatrix> packed;  ///< the same in the matrix library's own layout
  Tensor bias;                                 ///< (out) or undefined
};

class Backend {
 public:
  explicit Backend(int threads = 0) : pool_(threads) {}
  virtual ~Backend() = default;
  ThreadPool& pool() { return pool_; }
  virtual std::string name() const { return "CPU f32"; }

  /// Recycled, uninitialised storage: large buffers keep their pages between passes.
  virtual Tensor empty(Shape shape);

  /// Packs `weight` (in, out; any strides) once. Throws Error naming `what` when a weight is not finite.
  virtual Linear linear_weights(Tensor weight, Tensor bias, const std::string& what);

  /// x (rows, in) → x W + b (rows, out)
  virtual Tensor linear(const Tensor& x, const Linear& w);
  /// Rows of `table` (vocab, width) picked by ids → (ids, width)
  virtual Tensor gather(const Tensor& table, std::span<const std::int32_t> ids);
  virtual Tensor add(const Tensor& a, const Tensor& b);
  /// (x − mean) / √(var + ε) · gain + bias over the last axis (Ba et al., Layer Normalization, 2016)
  virtual Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon);
  /// x / √(mean x² + ε) · gain (Zhang & Sennrich, Root Mean Square Layer Normalization, 2019)
  virtual Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon);
  enum class Unary { relu, gelu, gelu_tanh, silu };
  virtual Tensor activate(Unary f, const Tensor& x);
  virtual Tensor multiply(const Tensor& a, const Tensor& b);
  /// x (rows, head, d) with pair (i, i + d/2) of row r rotated by angles(r, i); cosine and sine are (rows, d/2).
  virtual Tensor rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine);

 private:
  ThreadPool pool_;
  std::shared_ptr<class BufferPool> buffers_;
};

}  // namespace headscope
