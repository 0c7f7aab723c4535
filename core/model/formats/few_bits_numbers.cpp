#include "core/model/formats/few_bits_numbers.h"

#include <algorithm>
#include <cstring>

#include "core/base/half.h"
#include "core/base/nth.h"

namespace headscope {

namespace {

constexpr Index block = 32;  // of all kinds that are made here

bool halves(const Tensor& numbers) {
  const Tensor all = numbers.packed();
  return std::ranges::all_of(all.values(), [](float number) { return half_to_float(float_to_half(number)) == number; });
}

/// Its elements without a look at what a tensor may be.
class Numbers {
 public:
  explicit Numbers(const Tensor& of) : data_(of.data()), down_(of.stride(0)), along_(of.stride(1)) {}
  float operator()(Index i, Index k) const { return data_[i * down_ + k * along_]; }

 private:
  const float* data_;
  Index down_, along_;
};

void put_half(float number, std::byte*& to) {
  const std::uint16_t bits = float_to_half(number);
  std::memcpy(to, &bits, sizeof bits);
  to += sizeof bits;
}

/// 32 numbers of 4 bits: the first 16 in the lower halves of as many bytes.
template <class Number>
void put_fours(const Number& number, std::byte*& to) {
  for (Index j = 0; j < block / 2; ++j) {
    const unsigned low = number(j), high = number(j + block / 2);
    *to++ = static_cast<std::byte>(low | high << 4);
  }
}

/// The kind of block that says the same; f32 where none does.
Stored kind_of(const FewBitsNumbers& of) {
  const Index each = of.numbers.dim(1) / of.scale.dim(1);
  if (!of.group.empty() || each % block != 0 || !halves(of.scale)) return Stored::f32;
  if (of.bias.defined()) return of.least == 0 && of.most < 16 && halves(of.bias) ? Stored::q4_1 : Stored::f32;
  float low = 0, high = 0;
  if (of.zero.defined()) {
    const Tensor zeros = of.zero.packed();
    const auto [first, last] = std::ranges::minmax(zeros.values());
    low = first, high = last;
  }
  const float least = static_cast<float>(of.least) - high, most = static_cast<float>(of.most) - low;
  if (least >= -8 && most < 8) return Stored::q4_0;
  return least >= -128 && most < 128 ? Stored::q8_0 : Stored::f32;
}

}  // namespace

Tensor tensor_of(const FewBitsNumbers& of) {
  const Index out = of.numbers.dim(0), in = of.numbers.dim(1), each = in / of.scale.dim(1);
  const Tensor none = Tensor::zeros(of.scale.shape());
  const Numbers number(of.numbers), scale(of.scale), zero(of.zero.defined() ? of.zero : none),
      bias(of.bias.defined() ? of.bias : none);
  const Stored kind = kind_of(of);
  if (kind == Stored::f32) {
    Tensor made = Tensor::uninitialized({out, in});
    float* to = made.mutable_data();
    for (Index i = 0; i < out; ++i)
      for (Index k = 0; k < in; ++k) {
        const Index group = of.group.empty() ? k / each : nth(of.group, k);
        const float whole = number(i, k) - zero(i, group);
        *to++ = of.bias.defined() ? scale(i, group) * whole + bias(i, group) : scale(i, group) * whole;
      }
    return made;
  }
  Tensor made = Tensor::uninitialized(kind, {out, in});
  // All outputs of 32 inputs before the next: where numbers of one input lie side by side, they stay in a cache.
  for (Index k = 0; k < in; k += block)
    for (Index i = 0; i < out; ++i) {
      const Index group = k / each;
      const float less = zero(i, group);
      const auto whole = [&](Index j) { return static_cast<int>(number(i, k + j) - less); };
      std::byte* to = made.mutable_stored() + stored::bytes_of(kind, i * in + k);
      put_half(scale(i, group), to);
      if (kind == Stored::q8_0) {
        for (Index j = 0; j < block; ++j) *to++ = static_cast<std::byte>(whole(j));
      } else if (kind == Stored::q4_0) {
        put_fours([&](Index j) { return static_cast<unsigned>(whole(j) + 8); }, to);
      } else {
        put_half(bias(i, group), to);
        put_fours([&](Index j) { return static_cast<unsigned>(whole(j)); }, to);
      }
    }
  return made;
}

Tensor mxfp4_of(const Shape& shape, const std::uint8_t* pairs, const std::uint8_t* exponents) {
  Tensor made = Tensor::uninitialized(Stored::mxfp4, shape);
  std::byte* to = made.mutable_stored();
  for (Index left = shape.size(); left > 0; left -= block, pairs += block / 2) {
    *to++ = static_cast<std::byte>(*exponents++);
    put_fours([&](Index j) { return static_cast<unsigned>(pairs[j / 2] >> (j % 2 * 4)) & 15u; }, to);
  }
  return made;
}

}  // namespace headscope
