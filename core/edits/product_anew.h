#pragma once
// Products of a block's matrices made again by edits that multiply with other numbers.

#include "core/model/weights.h"
#include "core/tensor/tensor.h"

namespace headscope {

/// Rows [first, last] of `out` (position, …) = input · weight + bias, all but the first axis taken as one; the first
/// `kept` numbers of every head stay.
void multiply_anew(const Projection& by, const Tensor& input, Index first, Index last, Index kept, Tensor& out);

/// The same for out (position, head, d_model), what each head adds: its columns of `input` (position, head, d_head)
/// times its rows of the weight, without the bias.
void multiply_heads_anew(const Projection& by, const Tensor& input, Index first, Index last, Tensor& out);

}  // namespace headscope
