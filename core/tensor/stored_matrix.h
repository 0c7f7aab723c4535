#pragma once
// Products with large matrices of numbers as they are stored, for which nothing is copied when they are packed. A panel
// at a time, for many rows a block, is decoded into a core's cache and multiplied there, while the next are asked for
// from memory. What is stored is multiplied exactly, in float32, to the bits of a product with the matrix's float32
// copy (pack_large): |error| of an element of x W + b ≤ (100 + in ÷ 32) · 2⁻²⁴ · (Σ |x| |W| + |b|), by the rounding of
// sums alone.

#include "core/tensor/matrix.h"

namespace headscope {

/// Whether pack_stored() takes this (in, out) matrix: columns that lie one behind the other, as torch.nn.Linear and
/// GGUF store them, and begin at whole blocks; or rows of F16 or BF16, as GPT-2's Conv1D stores them. Others (every
/// second number, blocks of Q8_0 across what is summed) are made float32.
bool multiplied_as_stored(const Tensor& matrix);

/// REQUIRES parts that are multiplied_as_stored(). Results do not depend on the number of threads.
std::shared_ptr<const PackedMatrix> pack_stored(std::span<const Tensor> parts);

}  // namespace headscope
