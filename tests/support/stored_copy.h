#pragma once
// Tensors as files store them, made of float32 ones.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/half.h"
#include "core/tensor/tensor.h"

namespace headscope::testing {

inline constexpr Stored block_kinds[] = {Stored::q8_0,    Stored::q4_0,  Stored::q4_1,    Stored::q5_0,   Stored::q5_1,
                                         Stored::q2_k,    Stored::q3_k,  Stored::q4_k,    Stored::q5_k,   Stored::q6_k,
                                         Stored::iq1_s,   Stored::iq1_m, Stored::iq2_xxs, Stored::iq2_xs, Stored::iq2_s,
                                         Stored::iq3_xxs, Stored::iq3_s, Stored::iq4_nl,  Stored::iq4_xs, Stored::mxfp4,
                                         Stored::nvfp4,   Stored::tq1_0, Stored::tq2_0};

/// Writes the scale of a block of IQ1_M, four bits above each of its last four whole numbers.
inline void put_scale_apart(std::byte* block, std::uint16_t half) {
  for (int i = 0; i < 4; ++i) {
    std::byte& upper = block[49 + 2 * i];
    upper = (upper & std::byte{0x0f}) | static_cast<std::byte>((half >> 4 * i & 0xf) << 4);
  }
}

/// Blocks of any bytes, whose numbers are finite and at most as large as the largest of `values` where they lie.
inline Tensor blocks_of_any_bytes(Stored kind, const Tensor& values) {
  Tensor out = Tensor::uninitialized(kind, values.shape());
  const stored::Layout of = stored::layout(kind);
  std::byte* to = out.mutable_stored();
  std::uint64_t state = 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(kind);
  const std::span<const float> from = values.values();
  for (std::size_t i = 0; i < from.size(); i += static_cast<std::size_t>(of.numbers), to += of.bytes) {
    float most = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(of.numbers); ++j) most = std::max(most, std::abs(from[i + j]));
    for (Index j = 0; j < of.bytes; ++j) {
      state = state * 6364136223846793005u + std::bit_cast<std::uint32_t>(from[i]) + 1442695040888963407u;
      to[j] = static_cast<std::byte>(state >> 56);
    }
    const auto scaled = [&](float by) {
      for (const Index at : of.halves) {
        const std::uint16_t bits = float_to_half(by);
        if (at >= 0) std::memcpy(to + at, &bits, sizeof bits);
      }
      if (kind == Stored::iq1_m) put_scale_apart(to, float_to_half(by));
      if (kind == Stored::nvfp4)  // four scales below twice the power of two
        for (int k = 0; k < 4; ++k)
          to[k] = static_cast<std::byte>(8 * std::clamp(std::ilogb(std::max(by, 1e-30f)) + 7 - k, 0, 14) + 2 * k);
      if (kind == Stored::mxfp4) to[0] = static_cast<std::byte>(127 + std::ilogb(std::max(by, 1e-30f)));
      std::vector<float> numbers(static_cast<std::size_t>(of.numbers));
      stored::decode(kind, to, 0, of.numbers, numbers.data());
      float largest = 0;
      for (const float number : numbers) largest = std::max(largest, std::abs(number));
      return largest;
    };
    if (const float largest = scaled(1); largest > 0) scaled(most / largest);
  }
  return out;
}

/// `values` (contiguous; rows of whole blocks) rounded to numbers of this kind; of blocks other than Q8_0 any numbers
/// of their size, since what those say is not asked.
inline Tensor stored_copy(Stored kind, const Tensor& values) {
  if (!stored::plain(kind) && kind != Stored::q8_0) return blocks_of_any_bytes(kind, values);
  constexpr std::size_t block = 32;
  Tensor out = Tensor::uninitialized(kind, values.shape());
  std::byte* to = out.mutable_stored();
  const auto put = [&](const auto& number) {
    std::memcpy(to, &number, sizeof number);
    to += sizeof number;
  };
  const std::span<const float> from = values.values();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (kind == Stored::f32) put(from[i]);
    if (kind == Stored::f16) put(float_to_half(from[i]));
    if (kind == Stored::bf16) put(static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(from[i]) + 0x8000u) >> 16));
    if (kind != Stored::q8_0) continue;
    if (i % block == 0) {
      float most = 0;
      for (std::size_t j = 0; j < block; ++j) most = std::max(most, std::abs(from[i + j]));
      put(float_to_half(most / 127));
    }
    std::uint16_t scale;
    std::memcpy(&scale, out.stored() + stored::bytes_of(kind, static_cast<Index>(i / block * block)), sizeof scale);
    const float by = half_to_float(scale);
    put(static_cast<std::int8_t>(by > 0 ? std::clamp(std::round(from[i] / by), -127.0f, 127.0f) : 0.0f));
  }
  return out;
}

}  // namespace headscope::testing
