#pragma once
// The vectorised inner loop of AdamW, compiled per instruction set.

#include "core/tensor/adamw_numbers.h"
#include "core/tensor/tensor.h"

namespace headscope {

/// One step, as AdamWRow says, of n elements.
void adamw_row(const AdamWRow& step, const float* gradient, Index n, float* first, float* second, float* weight);

}  // namespace headscope
