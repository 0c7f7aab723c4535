#pragma once

#include "core/tensor/tensor.h"

namespace headscope {

/// Largest |a − b| of two tensors of one shape, in float64; 0 for empty ones. Unlike a fold by std::max it is NaN when
/// anything is: what cannot be compared is not "no difference". REQUIRES equal shapes.
double greatest_gap(const Tensor& a, const Tensor& b);

}  // namespace headscope
