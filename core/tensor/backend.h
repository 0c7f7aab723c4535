#pragma once
// The ops of a forward pass. The base class is the CPU; another device overrides what it does better. Ops take and
// return whole tensors (values), so a tape can record them and a tap can replace what flows between them. Shapes: rows
// are positions. Thread rule: one pass at a time per Backend.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/matrix.h"
#include "core/tensor/tape.h"
#include "core/tensor/tensor.h"

namespace headscope {

class AttentionKernel;
class UpdateKernel;
class BufferPool;
class RowQueue;

/// Weight matrices that multiply the same input, side by side, ready to use.
struct Linear {
  std::vector<Tensor> parts;   ///< (in, out_i) views of the stored weights, kept for reading
  std::vector<Tensor> biases;  ///< (out_i), views likewise, undefined where a part has none
  /// (in, Σ out_i); null for weights that change from pass to pass (training), which are multiplied where they are.
  std::shared_ptr<const PackedMatrix> packed;
  Tensor bias;  ///< (Σ out_i) or undefined; only with `packed`
  bool defined() const { return !parts.empty(); }
  Index in() const { return parts[0].dim(0); }
  Index out() const;
};

class Backend {
 public:
  /// `threads` as for ThreadPool.
  explicit Backend(int threads = 0);
  virtual ~Backend();
  ThreadPool& pool() { return pool_; }
  /// What numbers may depend on, "CPU f32, AVX-512": not on how many threads there are.
  virtual std::string name() const;
  std::string described() const;  ///< "CPU f32, AVX-512, 2 threads"

  /// Uninitialised storage on this machine; large buffers are used again once nobody refers to them.
  Tensor empty(Shape shape);

  // Of devices with memory of their own, whose tensors come here when they are looked at (core/tensor/remote.h).

  /// Whether ops return before they are done.
  virtual bool asynchronous() const { return false; }
  /// `weight`, which many ops will read and nobody will write to (but updates(), and whoever does it by way of what
  /// this returns), where this device reads it fastest. It may be undefined.
  virtual Tensor resident(Tensor weight) { return weight; }
  /// x in storage of its own, contiguous f32, where it is computed on.
  virtual Tensor copy(const Tensor& x) { return x.copy(); }
  Tensor packed(const Tensor& x) { return x.contiguous() && x.kind() == Stored::f32 ? x : copy(x); }
  /// Writes `rows` over those of `all` from `at` on. Both contiguous behind the first axis. `all` may move to the
  /// device, with the rows before `at`.
  virtual void put_rows(Tensor& all, Index at, const Tensor& rows);
  /// Uninitialised storage where ops compute.
  virtual Tensor room(Shape shape) { return empty(shape); }
  /// Writes zeros over x (contiguous).
  virtual void clear(Tensor x);
  /// Own kernels for attention, or null.
  virtual AttentionKernel* attention() { return nullptr; }
  /// Own kernels for what an optimiser does to weights that are resident() here, or null.
  virtual UpdateKernel* updates() { return nullptr; }
  /// At the end of a pass: what was put off is done, what was sent has come.
  virtual void finish() {}
  /// A pass is given up. Does nothing behind finish().
  virtual void abandon() {}

  /// Packs `weights` (in, out_i; any strides and kind of numbers) once, or, when they are `changing`, never. A bias may
  /// be undefined; where some have one, the others count as 0.
  virtual Linear linear_weights(std::vector<Tensor> weights, const std::vector<Tensor>& biases, bool changing = false);

  // Ops that take `later` work row by row: given a queue, they may note the work down there, and what they return holds
  // its values once the queue has run. Row r of every operand must then be row r of what earlier ops noted (or hold its
  // values already). Not with a tape, and not where the device is asynchronous().

  /// x (rows, in) → x W + b (rows, Σ out_i)
  virtual Tensor linear(const Tensor& x, const Linear& w, RowQueue* later = nullptr);
  /// Rows of `table` (vocab, width; any kind of numbers) picked by ids → (ids, width). REQUIRES ids inside the table.
  virtual Tensor gather(const Tensor& table, std::span<const std::int32_t> ids);
  virtual Tensor add(const Tensor& a, const Tensor& b, RowQueue* later = nullptr);
  virtual Tensor multiply(const Tensor& a, const Tensor& b, RowQueue* later = nullptr);
  /// x · factor
  virtual Tensor scale(const Tensor& x, float factor, RowQueue* later = nullptr);
  /// limit · tanh(x ÷ limit)
  virtual Tensor soft_cap(const Tensor& x, float limit, RowQueue* later = nullptr);
  /// x cut to [−limit, limit]; the gradient of what was cut is 0.
  virtual Tensor clip(const Tensor& x, float limit, RowQueue* later = nullptr);
  /// (x − mean) / √(var + ε) · gain + bias over the last axis (Ba et al., Layer Normalization, 2016). Gain and bias may
  /// be several times as long as that axis: row r then takes part r mod (their number).
  virtual Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon,
                            RowQueue* later = nullptr);
  /// x / √(mean x² + ε) · gain (Zhang & Sennrich, Root Mean Square Layer Normalization, 2019), likewise.
  virtual Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon, RowQueue* later = nullptr);
  enum class Unary { relu, gelu, gelu_tanh, silu };
  virtual Tensor activate(Unary f, const Tensor& x, RowQueue* later = nullptr);
  /// x ∘ softmax(x) over the last axis (Elhage et al., Softmax Linear Units, 2022).
  virtual Tensor solu(const Tensor& x, RowQueue* later = nullptr);
  /// xIELU (Huang & Schlag, Deriving Activation Functions Using Integration, 2025): α_p x² + β x above 0, else
  /// α_n (e^min(x, ε) − 1 − x) + β x. Its gradient is that of x alone.
  struct Xielu {
    float positive = 0.8f, negative = 0.8f;  ///< α_p, α_n: learned by layer; here where training begins
    float beta = 0.5f, epsilon = -1e-6f;
  };
  virtual Tensor xielu(const Xielu& f, const Tensor& x, RowQueue* later = nullptr);
  /// x (row, head, d) with `shared` (row, r ≤ d) added to the first r numbers of every head.
  virtual Tensor add_to_heads(const Tensor& x, const Tensor& shared, RowQueue* later = nullptr);
  /// x (row, head, d) with pair i of row r turned by its angle; cosine and sine are (row, pairs), 2 · pairs ≤ d. Pair i
  /// is (i, i + pairs), or `adjacent` (2i, 2i + 1); what follows the pairs stays.
  virtual Tensor rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine, RowQueue* later = nullptr,
                        bool adjacent = false);
  /// Mean of −ln softmax(logits)[target] over the rows whose target is not −1, in nats. logits (row, vocab); at least
  /// one target counts, and those that do lie inside the vocabulary.
  struct Loss {
    Tensor mean;      ///< (1)
    double nats = 0;  ///< the same, not rounded to float32
  };
  virtual Loss cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets);

  /// Ops record on `tape` (which may be null) while this lives.
  class Recording {
   public:
    Recording(Backend& backend, Tape* tape) : backend_(backend), before_(backend.tape_) { backend.tape_ = tape; }
    ~Recording() { backend_.tape_ = before_; }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    Backend& backend_;
    Tape* before_;
  };
  Tape* tape() const { return tape_; }
  /// Adds `from` to a gradient, or writes it there.
  virtual void accumulate(const Tensor& from, const Tape::Slot& into);

  /// True when every element is a finite number; of numbers that are not f32, as they are stored.
  bool finite(const Tensor& x);
  /// Looks x (row, column) through, for not_finite().
  virtual void look_through(const Tensor& x);
  struct NotFinite {
    Index row = -1, column = 0;  ///< of the first number that is not finite; row < 0: all are
    float value = 0;
  };
  /// Of every tensor looked through since the last call, in order. Waits for what is still under way.
  virtual std::vector<NotFinite> not_finite();

 protected:
  /// The matrices side by side in the form that this device multiplies with.
  virtual std::shared_ptr<const PackedMatrix> pack(std::span<const Tensor> weights);
  /// Records out = a + b: its gradient is that of both, wherever it lies.
  void record_sum(const Tensor& out, const Tensor& a, const Tensor& b);

 private:
  Tensor norm(bool center, const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon, RowQueue* later);
  /// body(begin, end) for ranges of rows, or of elements of x taken as flat, now or later; it captures by value.
  /// `cost`: of a row, or an element, in elements of simple arithmetic.
  template <class Body>
  void each_row(RowQueue* later, Index rows, Index cost, Body body);
  template <class Body>
  void each_element(RowQueue* later, const Tensor& x, Index cost, Body body);
  void linear_backward(Tape& tape, const Tensor& x, const Linear& w, const Tensor& d_out);
  /// body(begin, end, add, dx) for ranges of a gradient taken as flat; through a copy where it has gaps.
  template <class Body>
  void write_gradient(const Tape::Slot& into, Index cost, Body body);
  void column_sums(const Tensor& x, const Tape::Slot& into);

  ThreadPool pool_;
  std::shared_ptr<BufferPool> buffers_;
  std::vector<NotFinite> looked_through_;
  Tape* tape_ = nullptr;
};

}  // namespace headscope
