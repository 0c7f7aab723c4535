#include "core/io/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/io/gguf_blocks.h"

namespace headscope {

namespace {

/// Items of type T one after another, each through `convert`.
template <class T, auto convert>
void each(const std::byte* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i) {
    T item;
    std::memcpy(&item, from + i * sizeof(T), sizeof(T));
    to[i] = convert(item);
  }
}

float same(float x) {
  return x;
}
float rounded(double x) {
  return static_cast<float>(x);
}
void q8_0(const std::byte* from, std::size_t blocks, float* to) {
  stored::decode(Stored::q8_0, from, 0, static_cast<Index>(blocks) * stored::block, to);
}

/// Micikevicius et al., FP8 Formats for Deep Learning, 2022: E4M3 has no infinities, and one pattern per sign that is
/// not a number; E5M2 is the upper half of a half.
float e4m3(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  if (exponent == 15 && fraction == 7) return std::bit_cast<float>(0x7fc00000u | std::uint32_t{bits} >> 7 << 31);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                        : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return bits & 0x80 ? -magnitude : magnitude;
}
float e5m2(std::uint8_t bits) {
  return half_to_float(static_cast<std::uint16_t>(bits << 8));
}

constexpr std::array table{
    DTypeInfo{DType::f32, "F32", 1, 4, &each<float, same>},
    DTypeInfo{DType::f16, "F16", 1, 2, &each<std::uint16_t, half_to_float>},
    DTypeInfo{DType::bf16, "BF16", 1, 2, &each<std::uint16_t, bfloat_to_float>},
    DTypeInfo{DType::f64, "F64", 1, 8, &each<double, rounded>},
    DTypeInfo{DType::f8_e4m3, "F8_E4M3", 1, 1, &each<std::uint8_t, e4m3>},
    DTypeInfo{DType::f8_e5m2, "F8_E5M2", 1, 1, &each<std::uint8_t, e5m2>},
    DTypeInfo{DType::i64, "I64", 1, 8, nullptr},
    DTypeInfo{DType::i32, "I32", 1, 4, nullptr},
    DTypeInfo{DType::i16, "I16", 1, 2, nullptr},
    DTypeInfo{DType::i8, "I8", 1, 1, nullptr},
    DTypeInfo{DType::u32, "U32", 1, 4, nullptr},
    DTypeInfo{DType::u8, "U8", 1, 1, nullptr},
    DTypeInfo{DType::boolean, "BOOL", 1, 1, nullptr},
    DTypeInfo{DType::q4_0, "Q4_0", 32, 18, &gguf_blocks::q4_0},
    DTypeInfo{DType::q4_1, "Q4_1", 32, 20, &gguf_blocks::q4_1},
    DTypeInfo{DType::q5_0, "Q5_0", 32, 22, &gguf_blocks::q5_0},
    DTypeInfo{DType::q5_1, "Q5_1", 32, 24, &gguf_blocks::q5_1},
    DTypeInfo{DType::q8_0, "Q8_0", 32, 34, &q8_0},
    DTypeInfo{DType::q2_k, "Q2_K", 256, 84, &gguf_blocks::q2_k},
    DTypeInfo{DType::q3_k, "Q3_K", 256, 110, &gguf_blocks::q3_k},
    DTypeInfo{DType::q4_k, "Q4_K", 256, 144, &gguf_blocks::q4_k},
    DTypeInfo{DType::q5_k, "Q5_K", 256, 176, &gguf_blocks::q5_k},
    DTypeInfo{DType::q6_k, "Q6_K", 256, 210, &gguf_blocks::q6_k},
    DTypeInfo{DType::iq4_nl, "IQ4_NL", 32, 18, &gguf_blocks::iq4_nl},
    DTypeInfo{DType::iq4_xs, "IQ4_XS", 256, 136, &gguf_blocks::iq4_xs},
    DTypeInfo{DType::mxfp4, "MXFP4", 32, 17, &gguf_blocks::mxfp4},
    DTypeInfo{DType::tq1_0, "TQ1_0", 256, 54, &gguf_blocks::tq1_0},
    DTypeInfo{DType::tq2_0, "TQ2_0", 256, 66, &gguf_blocks::tq2_0},
};

}  // namespace

std::span<const DTypeInfo> dtypes() {
  return table;
}
const DTypeInfo& dtype_info(DType type) {
  return *std::ranges::find(table, type, &DTypeInfo::type);
}
std::size_t dtype_size(DType type) {
  return dtype_info(type).bytes;
}
std::string dtype_name(DType type) {
  return std::string(dtype_info(type).name);
}

std::optional<Stored> stored_type(DType type) {
  switch (type) {
    case DType::f32:
      return Stored::f32;
    case DType::f16:
      return Stored::f16;
    case DType::bf16:
      return Stored::bf16;
    case DType::q8_0:
      return Stored::q8_0;
    default:
      return std::nullopt;
  }
}

std::optional<std::uint64_t> stored_bytes(const std::vector<std::int64_t>& shape, DType type) {
  const DTypeInfo& info = dtype_info(type);
  const auto block = static_cast<std::int64_t>(info.items);
  if (block > 1 && (shape.empty() || shape.back() % block != 0)) return std::nullopt;
  // Extents of 0 count as 1 for the overflow check, because strides are products of the other extents. Where numbers
  // take less than a byte, they too must be countable.
  std::int64_t product = 1, bytes = 0;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product)) return std::nullopt;
  }
  if (__builtin_mul_overflow(block > 1 ? product / block : product, static_cast<std::int64_t>(info.bytes), &bytes))
    return std::nullopt;
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

}  // namespace headscope
