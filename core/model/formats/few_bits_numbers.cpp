#include "core/model/formats/few_bits_numbers.h"

#include <algorithm>
#include <cstring>

#include "core/base/half.h"
#include "core/base/nth.h"

namespace headscope {

namespace {

bool a_half(float number) {
  return half_to_float(float_to_half(number)) == number;
}

/// Whether all are halves.
bool halves(const Tensor& numbers) {
  const Tensor all = numbers.packed();
  return std::ranges::all_of(all.values(), a_half);
}

/// As Q8_0; undefined where that would say something else.
Tensor in_blocks(const FewBitsNumbers& of) {
  const Index out = of.numbers.dim(0), in = of.numbers.dim(1), each = in / of.scale.dim(1);
  if (of.bias.defined() || !of.group.empty() || each % stored::block != 0 || !halves(of.scale)) return {};
  Tensor made = Tensor::uninitialized(Stored::q8_0, {out, in});
  std::byte* to = made.mutable_stored();
  for (Index i = 0; i < out; ++i)
    for (Index k = 0; k < in; k += stored::block) {
      const Index group = k / each;
      const std::uint16_t scale = float_to_half(of.scale.at(i, group));
      const float zero = of.zero.defined() ? of.zero.at(i, group) : 0.0f;
      std::memcpy(to, &scale, sizeof scale);
      to += sizeof scale;
      for (Index j = 0; j < stored::block; ++j) {
        const float number = of.numbers.at(i, k + j) - zero;
        if (number < -128 || number > 127) return {};
        *to++ = static_cast<std::byte>(static_cast<std::int8_t>(number));
      }
    }
  return made;
}

}  // namespace

Tensor tensor_of(const FewBitsNumbers& of) {
  if (Tensor blocks = in_blocks(of); blocks.defined()) return blocks;
  const Index out = of.numbers.dim(0), in = of.numbers.dim(1), each = in / of.scale.dim(1);
  Tensor made = Tensor::uninitialized({out, in});
  const auto stand = [&](Index i, Index k, Index group) {
    const float number = of.numbers.at(i, k), scale = of.scale.at(i, group);
    return of.bias.defined() ? scale * number + of.bias.at(i, group)
                             : scale * (number - (of.zero.defined() ? of.zero.at(i, group) : 0.0f));
  };
  float* to = made.mutable_data();
  for (Index i = 0; i < out; ++i)
    for (Index k = 0; k < in; ++k) *to++ = stand(i, k, of.group.empty() ? k / each : nth(of.group, k));
  return made;
}

}  // namespace headscope
