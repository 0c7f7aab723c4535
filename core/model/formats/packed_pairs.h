#pragma once
// Matrices of 4-bit numbers as GPT-OSS is published (OCP Microscaling Formats v1.0, 2023: MXFP4): NAME_blocks
// (expert, out, group, 16) and NAME_scales (expert, out, group), both U8. Byte i of a group holds its numbers 2i, in
// the low four bits, and 2i + 1; 32 numbers share a scale:
//   number = sign · {0, ½, 1, 1½, 2, 3, 4, 6}[three bits] · 2^(scale − 127)
// GGUF keeps the same numbers in another order (core/tensor/gguf_blocks-inl.h).

#include <string>

#include "core/io/tensor_file.h"

namespace headscope {

/// Whether `file` has NAME so, and not as a tensor.
bool in_packed_pairs(const TensorFile& file, const std::string& name);
/// NAME as (expert, in, out): a view of what was read. Throws Error naming file, tensor and shapes where they are not
/// those of `shape`.
Tensor from_packed_pairs(const TensorFile& file, const std::string& name, const Shape& shape);
/// "NAME" for one of its two tensors, else "".
std::string packed_pairs_of(const TensorFile& file, const std::string& stored);

}  // namespace headscope
