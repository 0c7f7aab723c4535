#pragma once
// The ops of a forward pass. The base class is the CPU; another device overrides what it does better. Ops take and
// return whole tensors (values), so a tape can record them and a tap can replace what flows between them. Shapes: rows
// are positions. Thread rule: one pass at a time per Backend.

#include <memory>
#include <span>
#include <string>

#include "core/base/thread_pool.h"
#include "core/tensor/matrix.h"
#include "core/tensor/tensor.h"

namespace headscope {

class BufferPool;

/// Weight matrices that multiply the same input, side by side, ready to use.
struct Linear {
  std::vector<Tensor> parts;                   ///< (in, out_i) views of the stored weights, kept for reading
  std::shared_ptr<const PackedMatrix> packed;  ///< (in, Σ out_i)
  Tensor bias;                                 ///< (Σ out_i) or undefined
};

class Backend {
 public:
  /// `threads` as for ThreadPool.
  explicit Backend(int threads = 0);
  virtual ~Backend();
  ThreadPool& pool() { return pool_; }
  virtual std::string name() const;  ///< "CPU f32, oneDNN 2.6.3, 2 threads"

  /// Uninitialised storage; large buffers are used again once nobody refers to them.
  Tensor empty(Shape shape);

  /// Packs `weights` (in, out_i; any strides) once. A bias may be undefined; where some have one, the others count as
  /// 0.
  virtual Linear linear_weights(std::vector<Tensor> weights, const std::vector<Tensor>& biases);

  /// x (rows, in) → x W + b (rows, Σ out_i)
  virtual Tensor linear(const Tensor& x, const Linear& w);
  /// Rows of `table` (vocab, width) picked by ids → (ids, width). REQUIRES ids inside the table.
  virtual Tensor gather(const Tensor& table, std::span<const std::int32_t> ids);
  virtual Tensor add(const Tensor& a, const Tensor& b);
  virtual Tensor multiply(const Tensor& a, const Tensor& b);
  /// (x − mean) / √(var + ε) · gain + bias over the last axis (Ba et al., Layer Normalization, 2016)
  virtual Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon);
  /// x / √(mean x² + ε) · gain (Zhang & Sennrich, Root Mean Square Layer Normalization, 2019)
  virtual Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon);
  enum class Unary { relu, gelu, gelu_tanh, silu };
  virtual Tensor activate(Unary f, const Tensor& x);
  /// x (row, head, d) with pair (i, i + d/2) of row r turned by its angle; cosine and sine are (row, d/2).
  virtual Tensor rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine);
  /// True when every element is a finite number.
  bool finite(const Tensor& x);

 protected:
  /// The matrices side by side in the form that this device multiplies with.
  virtual std::shared_ptr<const PackedMatrix> pack(std::span<const Tensor> weights);

 private:
  /// body(first row, end row) over rows of `width` elements: in parallel when the work is worth it.
  template <class Body>
  void over_rows(Index rows, Index width, Index cost, Body body);

  ThreadPool pool_;
  std::shared_ptr<BufferPool> buffers_;
};

}  // namespace headscope
