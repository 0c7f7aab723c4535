#pragma once
// What an optimiser does to weights that lie on a device (Backend::updates()). AdamW asks it; the sums are those of the
// processor, in other orders.

#include <span>

#include "core/tensor/adamw_numbers.h"
#include "core/tensor/tensor.h"

namespace headscope {

class UpdateKernel {
 public:
  virtual ~UpdateKernel() = default;
  /// As gradient_norm() of core/train/adamw.h. The tensors are contiguous.
  virtual double gradient_norm(std::span<const Tensor> gradients) = 0;
  /// One tensor's step. All contiguous and of one size; all but the gradient have been resident() here.
  struct Update {
    Tensor gradient, first, second, weight;
    float keep;  ///< in place of AdamWRow::keep
  };
  virtual void adamw(const AdamWRow& row, std::span<const Update> updates) = 0;
};

}  // namespace headscope
