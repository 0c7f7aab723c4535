#pragma once
// The convolution along the tokens beside the first block: ModelConfig::convolution. Private to core/model.

#include <span>
#include <vector>

#include "core/model/config.h"
#include "core/tensor/backend.h"

namespace headscope {

/// φ(Σ_t x_(i + t) W_t + b) of x (token, d_model), which holds all its values; `taps`: by t, the bias in the first.
/// `lengths`: of several texts one after another, none of which sees another; empty: one.
Tensor convolved_along(const FirstConvolution& config, const std::vector<Linear>& taps, Backend& backend,
                       const Tensor& x, std::span<const Index> lengths);

}  // namespace headscope
