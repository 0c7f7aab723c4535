#pragma once
// The output matrix head by head: what each head adds to the residual stream, where somebody looks at that. Private to
// core/model.

#include "core/tensor/backend.h"

namespace headscope {

/// (position, head, d_model) of z (position, head, d_value). `o`: one part, of all heads; its bias is no head's.
Tensor head_results(const Linear& o, const Tensor& z, Backend& backend);
/// Their sum over heads, head after head, and the bias, which may be undefined: (position, d_model).
Tensor heads_summed(const Tensor& results, const Tensor& bias, Backend& backend);

}  // namespace headscope
