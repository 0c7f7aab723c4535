#pragma once
// How numbers lie in files: the plain types of safetensors and PyTorch, and the blocks of GGUF, in which a few numbers
// share a scale. One table; a type that a format adds is a line of it and a decoder.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/half.h"
#include "core/tensor/stored.h"

namespace headscope {

enum class DType {
  f32,
  f16,
  bf16,
  f64,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u32,
  u8,
  boolean,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  tq1_0,
  tq2_0,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  nvfp4
};

struct DTypeInfo {
  DType type;
  std::string_view name;  ///< "F32", "Q4_K"
  std::size_t items;      ///< numbers in a block; 1 for plain types
  std::size_t bytes;      ///< of a block
  /// `blocks` blocks as float32: F64 rounded to nearest, everything else exactly as its format's documentation says,
  /// computed in float32. Null for whole numbers.
  void (*decode)(const std::byte* from, std::size_t blocks, float* to);
  std::optional<Stored> stored = {};  ///< as which tensors keep it and products read it; else it is made float32
};
const DTypeInfo& dtype_info(DType type);
std::span<const DTypeInfo> dtypes();

std::size_t dtype_size(DType type);  ///< bytes of one number of a plain type, of one block otherwise
std::string dtype_name(DType type);
std::optional<Stored> stored_type(DType type);
/// F8 numbers mean nothing without the scale that is stored beside them.
inline bool needs_scale(DType type) {
  return type == DType::f8_e4m3 || type == DType::f8_e5m2;
}

/// Bytes of a tensor; nullopt when they do not fit 63 bits, or when the last extent is not whole blocks.
std::optional<std::uint64_t> stored_bytes(const std::vector<std::int64_t>& shape, DType type);

}  // namespace headscope
