#include "core/io/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

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
template <Stored kind>
void blocks(const std::byte* from, std::size_t count, float* to) {
  stored::decode(kind, from, 0, static_cast<Index>(count) * stored::layout(kind).numbers, to);
}
/// The line of a type of GGUF's blocks.
template <Stored kind>
constexpr DTypeInfo in_blocks(DType type, std::string_view name) {
  constexpr stored::Layout of = stored::layout(kind);
  return {type, name, static_cast<std::size_t>(of.numbers), static_cast<std::size_t>(of.bytes), &blocks<kind>, kind};
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
    DTypeInfo{DType::f32, "F32", 1, 4, &each<float, same>, Stored::f32},
    DTypeInfo{DType::f16, "F16", 1, 2, &each<std::uint16_t, half_to_float>, Stored::f16},
    DTypeInfo{DType::bf16, "BF16", 1, 2, &each<std::uint16_t, bfloat_to_float>, Stored::bf16},
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
    in_blocks<Stored::q4_0>(DType::q4_0, "Q4_0"),
    in_blocks<Stored::q4_1>(DType::q4_1, "Q4_1"),
    in_blocks<Stored::q5_0>(DType::q5_0, "Q5_0"),
    in_blocks<Stored::q5_1>(DType::q5_1, "Q5_1"),
    in_blocks<Stored::q8_0>(DType::q8_0, "Q8_0"),
    in_blocks<Stored::q2_k>(DType::q2_k, "Q2_K"),
    in_blocks<Stored::q3_k>(DType::q3_k, "Q3_K"),
    in_blocks<Stored::q4_k>(DType::q4_k, "Q4_K"),
    in_blocks<Stored::q5_k>(DType::q5_k, "Q5_K"),
    in_blocks<Stored::q6_k>(DType::q6_k, "Q6_K"),
    in_blocks<Stored::iq4_nl>(DType::iq4_nl, "IQ4_NL"),
    in_blocks<Stored::iq4_xs>(DType::iq4_xs, "IQ4_XS"),
    in_blocks<Stored::mxfp4>(DType::mxfp4, "MXFP4"),
    in_blocks<Stored::tq1_0>(DType::tq1_0, "TQ1_0"),
    in_blocks<Stored::tq2_0>(DType::tq2_0, "TQ2_0"),
    in_blocks<Stored::iq1_s>(DType::iq1_s, "IQ1_S"),
    in_blocks<Stored::iq1_m>(DType::iq1_m, "IQ1_M"),
    in_blocks<Stored::iq2_xxs>(DType::iq2_xxs, "IQ2_XXS"),
    in_blocks<Stored::iq2_xs>(DType::iq2_xs, "IQ2_XS"),
    in_blocks<Stored::iq2_s>(DType::iq2_s, "IQ2_S"),
    in_blocks<Stored::iq3_xxs>(DType::iq3_xxs, "IQ3_XXS"),
    in_blocks<Stored::iq3_s>(DType::iq3_s, "IQ3_S"),
    in_blocks<Stored::nvfp4>(DType::nvfp4, "NVFP4"),
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
  return dtype_info(type).stored;
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
