#pragma once

#include <memory>

#include "core/edits/edit.h"
#include "core/tensor/quantized.h"

namespace headscope {

/// The matrices of a block multiplied with numbers of few bits (core/tensor/quantized.h): those of attention and of its
/// one MLP; experts, norms, embeddings and what attention itself computes stay. What a matrix gives is made anew at the
/// positions reached, by the model's own weights, before any other edit of it acts; of several edits of one matrix the
/// last counts.
struct Quantize {
  Quantization how;
  bool operator==(const Quantize&) const = default;
};
std::shared_ptr<const Edit> edit_of(Quantize value);

}  // namespace headscope
