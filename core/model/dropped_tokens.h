#pragma once
// Masked tokens of models that dropped them in training (ModelConfig::dropped_token). Private to core/model.

#include <cstdint>
#include <span>

#include "core/tensor/backend.h"

namespace headscope {

/// rows (token, width) with those of the dropped token as 0 and the others of their text divided by their share of it.
/// `lengths`: of the texts, one after another; empty: one text.
Tensor without_dropped(Backend& backend, const Tensor& rows, std::span<const std::int32_t> tokens,
                       std::span<const Index> lengths, std::int32_t dropped, RowQueue* later);

}  // namespace headscope
