// What kernels that read stored numbers share: F16, and columns that are turned in registers. Compiled once per
// instruction set.

#if defined(HEADSCOPE_STORED_COLUMNS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_STORED_COLUMNS_INL_H
#undef HEADSCOPE_STORED_COLUMNS_INL_H
#else
#define HEADSCOPE_STORED_COLUMNS_INL_H
#endif

#include "core/tensor/stored.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::stored {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Bits = hn::Vec<hn::RebindToUnsigned<D>>;

// Whether this instruction set converts numbers of 16 bits by itself, and not Highway in several steps.
#undef HEADSCOPE_CONVERTS_HALVES
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2)
#define HEADSCOPE_CONVERTS_HALVES 0
#else
#define HEADSCOPE_CONVERTS_HALVES 1
#endif

/// Numbers of F16, given by their bits.
template <class Tag>
HWY_INLINE hn::Vec<Tag> FromHalves(Tag d, hn::Vec<hn::Rebind<std::uint16_t, Tag>> bits) {
  const auto numbers = hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, Tag>(), bits));
#if HEADSCOPE_CONVERTS_HALVES
  return numbers;
#else  // which takes infinity and NaN for numbers
  const hn::RebindToUnsigned<Tag> whole;
  const auto wide = hn::PromoteTo(whole, bits), exponent = hn::Set(whole, 0x7c00u);
  const auto special =
      hn::Or(hn::Set(whole, 0x7f800000u), hn::Or(hn::ShiftLeft<16>(hn::And(wide, hn::Set(whole, 0x8000u))),
                                                 hn::ShiftLeft<13>(hn::And(wide, hn::Set(whole, 0x3ffu)))));
  return hn::IfThenElse(hn::RebindMask(d, hn::Eq(hn::And(wide, exponent), exponent)), hn::BitCast(d, special), numbers);
#endif
}

#if HWY_TARGET != HWY_SCALAR
/// Of 16 bytes of every fourth column, from the first, second, third and fourth on: turned[i] are the i-th 32 bits of
/// each column.
HWY_INLINE void TurnFour(const Bits (&r)[4], Bits (&turned)[4]) {
  const hn::RebindToUnsigned<D> whole;
  const hn::Repartition<std::uint64_t, D> pairs;
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(whole, r[0], r[1])),
             high01 = hn::BitCast(pairs, hn::InterleaveUpper(whole, r[0], r[1])),
             low23 = hn::BitCast(pairs, hn::InterleaveLower(whole, r[2], r[3])),
             high23 = hn::BitCast(pairs, hn::InterleaveUpper(whole, r[2], r[3]));
  turned[0] = hn::BitCast(whole, hn::InterleaveLower(pairs, low01, low23));
  turned[1] = hn::BitCast(whole, hn::InterleaveUpper(pairs, low01, low23));
  turned[2] = hn::BitCast(whole, hn::InterleaveLower(pairs, high01, high23));
  turned[3] = hn::BitCast(whole, hn::InterleaveUpper(pairs, high01, high23));
}

/// Where as many columns as a register has numbers lie, `step` bytes from one to the next: every fourth is pointed at,
/// from which an address reaches the three behind it.
struct Columns {
  static constexpr Index lanes = static_cast<Index>(hn::MaxLanes(D()));
  const std::byte* fourth[lanes / 4];
  Index step, thrice;

  Columns() = default;
  HWY_INLINE Columns(const std::byte* from, Index apart) : step(apart), thrice(3 * apart) {
    for (Index i = 0; i < lanes / 4; ++i) fourth[i] = from + 4 * i * apart;
  }
  HWY_INLINE const std::byte* operator[](Index column) const {
    return fourth[column / 4] + (column % 4 == 3 ? thrice : column % 4 * step);
  }
  HWY_INLINE Columns operator+(Index bytes) const {
    Columns sum = *this;
    for (const std::byte*& from : sum.fourth) from += bytes;
    return sum;
  }
  /// 16 bytes of every fourth column, from this one on, that begin at `byte`.
  HWY_INLINE Bits sixteen(Index first, Index byte) const {
    const hn::RebindToUnsigned<D> d;
    const auto of = [&](Index i) HWY_ATTR {
      return hn::LoadDup128(d, reinterpret_cast<const std::uint32_t*>((*this)[first + 4 * i] + byte));
    };
    Bits all = of(lanes / 4 - 1);
#pragma GCC unroll 4
    for (Index i = lanes / 4 - 1; i > 0; --i)
      all = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(4 * i)), of(i - 1), all);
    return all;
  }
  /// The 16 bytes of all columns that begin at `byte`, by 32 bits: out[i] are the i-th of each.
  HWY_INLINE void turned(Index byte, Bits (&out)[4]) const {
    const Bits four[4] = {sixteen(0, byte), sixteen(1, byte), sixteen(2, byte), sixteen(3, byte)};
    TurnFour(four, out);
  }
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace headscope::stored
HWY_AFTER_NAMESPACE();

#endif
