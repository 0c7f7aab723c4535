#pragma once
// What core/tensor/stored.h says, for numbers in GGUF's blocks. Private to it.

#include "core/tensor/stored.h"

namespace headscope::stored::blocks {

float number(Stored kind, const std::byte* from, Index index);
void decode(Stored kind, const std::byte* from, Index first, Index count, float* to);
/// Whether all numbers of so many blocks are finite, by decoding those that may not be.
bool finite(Stored kind, const std::byte* from, Index blocks);

void unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride, const Ahead& ahead);
Index columns_beside();
void multiply_columns(const Lines& b, const float* x, Index depth, Index columns, Index block_depth, const float* added,
                      float* out, Index ahead);

}  // namespace headscope::stored::blocks
