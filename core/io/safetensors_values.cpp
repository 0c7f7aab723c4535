// Numbers of a safetensors file as float32.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/io/safetensors.h"

namespace headscope {

namespace {

/// Reads items of type T through `convert`, a stretch at a time.
template <class T, class Convert>
Tensor converted(const TensorEntry& entry, const Shape& shape, Convert convert) {
  Tensor out = Tensor::uninitialized(shape);
  float* values = out.mutable_data();
  const auto count = static_cast<std::size_t>(entry.elements());
  std::vector<T> stretch(std::min<std::size_t>(count, std::size_t{1} << 18));
  for (std::size_t done = 0; done < count; done += stretch.size()) {
    stretch.resize(std::min(stretch.size(), count - done));
    entry.file->read(entry.offset + done * sizeof(T), std::as_writable_bytes(std::span(stretch)));
    for (const T item : stretch) *values++ = convert(item);
  }
  return out;
}

}  // namespace

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
  if (exponent == 0) {  // zero or subnormal: fraction · 2^-24, exact in float32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  // Infinity and NaN keep the all-ones exponent; the bias moves from 15 to 127 for the rest.
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  const auto half = [&](std::uint32_t rest) { return static_cast<std::uint16_t>(sign | rest); };
  if (magnitude > 0x7f800000u) return half(0x7e00u | (magnitude >> 13 & 0x3ffu));  // NaN, made quiet
  if (magnitude >= 0x477ff000u) return half(0x7c00u);  // from 65520 on, half way past the largest half: infinity
  // Below 2^-14 a half counts in steps of 2^-24; nearbyint rounds halves to even. 1024 steps are the smallest normal.
  if (magnitude < 0x38800000u) return half(static_cast<std::uint32_t>(std::nearbyint(std::abs(value) * 0x1p24f)));
  // Adding just under half of the dropped 13 bits, or half of them when the kept part is odd, rounds to nearest even; a
  // carry runs into the exponent as it should.
  const std::uint32_t rebased = magnitude - (112u << 23);
  return half((rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13);
}

Tensor to_float(const TensorEntry& entry) {
  const std::string where = (entry.file ? entry.file->path().string() + ": " : "") + "tensor " + excerpt(entry.name);
  if (entry.shape.size() > Shape::max_rank)
    throw Error(where, fmt::format("at most {} axes", Shape::max_rank), fmt::format("shape {}", entry.shape));
  const Shape shape{std::span<const Index>(entry.shape)};
  switch (entry.dtype) {
    case DType::f32: {
      Tensor out = Tensor::uninitialized(shape);
      entry.read(std::as_writable_bytes(std::span(out.mutable_data(), static_cast<std::size_t>(entry.elements()))));
      return out;
    }
    case DType::f16:
      return converted<std::uint16_t>(entry, shape, half_to_float);
    case DType::bf16:  // the upper half of a float32
      return converted<std::uint16_t>(entry, shape,
                                      [](std::uint16_t x) { return std::bit_cast<float>(std::uint32_t{x} << 16); });
    case DType::f64:
      return converted<double>(entry, shape, [](double x) { return static_cast<float>(x); });
    default:
      throw Error(where, "a floating-point dtype (F64, F32, F16, BF16)", dtype_name(entry.dtype));
  }
}

}  // namespace headscope
