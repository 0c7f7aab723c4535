#pragma once
// Tensors as files store them, made of float32 ones.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/half.h"
#include "core/tensor/tensor.h"

namespace headscope::testing {

/// `values` (contiguous; rows of whole blocks) rounded to numbers of this kind.
inline Tensor stored_copy(Stored kind, const Tensor& values) {
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
    if (i % static_cast<std::size_t>(stored::block) == 0) {
      float most = 0;
      for (std::size_t j = 0; j < static_cast<std::size_t>(stored::block); ++j)
        most = std::max(most, std::abs(from[i + j]));
      put(float_to_half(most / 127));
    }
    std::uint16_t scale;
    std::memcpy(&scale, out.stored() + stored::bytes_of(kind, static_cast<Index>(i) / stored::block * stored::block),
                sizeof scale);
    const float by = half_to_float(scale);
    put(static_cast<std::int8_t>(by > 0 ? std::clamp(std::round(from[i] / by), -127.0f, 127.0f) : 0.0f));
  }
  return out;
}

}  // namespace headscope::testing
