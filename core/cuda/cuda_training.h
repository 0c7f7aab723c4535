#pragma once
// Training on the card: what its ops leave on a tape, products with weights that change, the loss, and what AdamW does
// to weights that stay there. The formulas are those of core/tensor/ops_*.cpp. Private to core/cuda.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/cuda/card_tensors.h"
#include "core/cuda/cuda_backend.h"
#include "core/cuda/gradients.h"
#include "core/tensor/backend.h"
#include "core/tensor/update_kernel.h"

namespace headscope::cuda {

/// Products of matrices on the card, in whatever precision was chosen.
class Products {
 public:
  Products(CardTensors card, Precision precision) : card_(std::move(card)), precision_(precision) {}
  /// c (rows, out) = a (rows, in) · b (in, out) + bias (may be null), or that product added to c. All ours, of any
  /// strides but c, whose rows have none inside.
  void multiply(const Tensor& a, const Tensor& b, const float* bias, const Tensor& c, bool add) const;

 private:
  struct Side;
  Side side(const Tensor& x) const;
  const CardTensors card_;
  const Precision precision_;
};

/// Records ops on the backend's tape, if it has one and something of them is active. `out` is what the op made; an
/// Operand is what its kernel read of the tensor named before it.
class Recorder {
 public:
  Recorder(Backend& backend, const CardTensors& card, Precision precision)
      : backend_(backend), card_(card), products_(card, precision) {}

  /// `back` writes, or adds, the gradient of x, contiguous, given that of `out`.
  using Back = std::function<void(const float* d_out, float* dx, bool add)>;
  void of_one(const Tensor& out, const Tensor& x, Back back);
  void scale(const Tensor& out, const Tensor& x, float factor);
  void multiply(const Tensor& out, const Tensor& a, const Operand& left, const Tensor& b, const Operand& right);
  void activate(const Tensor& out, Curve f, const Tensor& x, const Operand& in);
  /// `bias` undefined: RMSNorm.
  void norm(const Tensor& out, const Tensor& x, const Operand& in, const Tensor& gain, const Operand& by,
            const Tensor& bias, double epsilon);
  void rotate(const Tensor& out, const Tensor& x, const Operand& cosine, const Operand& sine, bool adjacent);
  void gather(const Tensor& out, const Tensor& table, std::span<const std::int32_t> ids);
  /// x W + b, and the record of it, for weights that are multiplied where they are.
  Tensor linear(const Tensor& x, const Linear& w);
  /// The same op as Backend's, of logits on the card. Waits for the loss.
  Backend::Loss cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets);

 private:
  template <class... Inputs>
  Tape* tape_for(const Inputs&... inputs) const;
  template <class Kernel>
  void write(Tape& tape, const Tensor& x, Kernel kernel) const;
  /// One of ours with x's numbers, of the same strides where x is ours already.
  Tensor here(const Tensor& x) const { return card_.ours(x) ? x : card_.on_card(x).keeps; }
  void linear_back(Tape& tape, const Tensor& x, const Tensor& rows, const Linear& w, const std::vector<Tensor>& parts,
                   const Tensor& d_out) const;

  Backend& backend_;
  const CardTensors card_;
  const Products products_;
};

class Updates final : public UpdateKernel {
 public:
  explicit Updates(CardTensors card) : card_(std::move(card)) {}
  double gradient_norm(std::span<const Tensor> gradients) override;
  void adamw(const AdamWRow& row, std::span<const Update> updates) override;

 private:
  const CardTensors card_;
};

}  // namespace headscope::cuda
