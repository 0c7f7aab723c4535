#include "core/tensor/stored.h"

#include <cassert>
#include <type_traits>

#include "core/base/half.h"
#include "core/tensor/ahead.h"
#include "core/tensor/panels.h"

// This file is compiled once per instruction set by foreach_target. What has SSSE3 has SSE4 as well, but for processors
// of 2006.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/tensor/stored.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
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

// 32 numbers of one kind that begin at `from`, as vectors: at(d, i) are numbers i, i + 1, … The numbers themselves
// begin `skipped` bytes later; Part() takes the `together` that lie in every 32 bits apart.

struct Bf16 {
  static constexpr bool plain = true;  // each number by itself: at() reads on behind the 32
  static constexpr Index bytes = 2 * block, skipped = 0, together = 2;
  HWY_INLINE explicit Bf16(const std::byte* from) : from_(reinterpret_cast<const std::uint16_t*>(from)) {}
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> at(Tag d, Index i) const {
    const hn::RebindToUnsigned<Tag> whole;
    const hn::Rebind<std::uint16_t, Tag> halves;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(whole, hn::LoadU(halves, from_ + i))));
  }
  static HWY_INLINE void Part(Bits bits, V, V* out) {
    const hn::RebindToUnsigned<D> whole;
    out[0] = hn::BitCast(D(), hn::ShiftLeft<16>(bits));
    out[1] = hn::BitCast(D(), hn::And(bits, hn::Set(whole, 0xffff0000u)));
  }

 private:
  const std::uint16_t* from_;
};

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

struct F16 {
  static constexpr bool plain = true;
  static constexpr Index bytes = 2 * block, skipped = 0, together = 2;
  HWY_INLINE explicit F16(const std::byte* from) : from_(reinterpret_cast<const std::uint16_t*>(from)) {}
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> at(Tag d, Index i) const {
    return FromHalves(d, hn::LoadU(hn::Rebind<std::uint16_t, Tag>(), from_ + i));
  }
  static HWY_INLINE void Part(Bits bits, V, V* out) {
    const D d;
    const hn::Rebind<std::uint16_t, D> halves;
    out[0] = FromHalves(d, hn::TruncateTo(halves, bits));
    out[1] = FromHalves(d, hn::TruncateTo(halves, hn::ShiftRight<16>(bits)));
  }

 private:
  const std::uint16_t* from_;
};

struct Q8 {
  using Few = hn::CappedTag<float, 4>;
  static constexpr bool plain = false;
  static constexpr Index bytes = 2 + block, skipped = 2, together = 4;
  HWY_INLINE explicit Q8(const std::byte* from)
      : scale_(hn::GetLane(FromHalves(Few(), hn::Set(hn::Rebind<std::uint16_t, Few>(), bits_at(from))))),
        from_(reinterpret_cast<const std::int8_t*>(from + skipped)) {}
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> at(Tag d, Index i) const {
    const hn::Rebind<std::int32_t, Tag> whole;
    const hn::Rebind<std::int8_t, Tag> small;
    return hn::Mul(hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(small, from_ + i))), hn::Set(d, scale_));
  }
  static HWY_INLINE void Part(Bits bits, V scale, V* out) {
    const D d;
    const auto whole = hn::BitCast(hn::RebindToSigned<D>(), bits);
    out[0] = hn::Mul(hn::ConvertTo(d, hn::ShiftRight<24>(hn::ShiftLeft<24>(whole))), scale);
    out[1] = hn::Mul(hn::ConvertTo(d, hn::ShiftRight<24>(hn::ShiftLeft<16>(whole))), scale);
    out[2] = hn::Mul(hn::ConvertTo(d, hn::ShiftRight<24>(hn::ShiftLeft<8>(whole))), scale);
    out[3] = hn::Mul(hn::ConvertTo(d, hn::ShiftRight<24>(whole)), scale);
  }

 private:
  float scale_;
  const std::int8_t* from_;
};

/// body(type_identity of the class that reads numbers of this kind)
template <class Body>
HWY_INLINE void ByKind(Stored kind, const Body& body) {
  if (kind == Stored::bf16)
    body(std::type_identity<Bf16>());
  else if (kind == Stored::f16)
    body(std::type_identity<F16>());
  else
    body(std::type_identity<Q8>());
}

/// Whole blocks one behind the other.
template <class Numbers>
HWY_INLINE void DecodeBlocks(const std::byte* HWY_RESTRICT from, Index blocks, float* HWY_RESTRICT to) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  for (; blocks > 0; --blocks, from += Numbers::bytes, to += block) {
    const Numbers numbers(from);
    for (Index i = 0; i < block; i += lanes) hn::StoreU(numbers.at(d, i), d, to + i);
  }
}

void DecodeWhole(Stored kind, const std::byte* from, Index blocks, float* to) {
  ByKind(kind, [&]<class Numbers>(std::type_identity<Numbers>) HWY_ATTR { DecodeBlocks<Numbers>(from, blocks, to); });
}

#if HWY_TARGET != HWY_SCALAR
/// Where as many columns as a register has numbers lie, `step` bytes from one to the next: every fourth is pointed at,
/// from which an address reaches the three behind it.
struct Columns {
  static constexpr Index lanes = static_cast<Index>(hn::MaxLanes(D()));
  const std::byte* fourth[lanes / 4];
  Index step, thrice;

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
};

/// The scales of such columns' blocks, one after the other. They are read some blocks ahead: a register that is loaded
/// from where its parts were just stored waits for all of them.
template <class Numbers>
class Scales {
 public:
  HWY_INLINE Scales(const Columns& from, Index blocks) : blocks_(blocks) {
    for (Index i = 0; i < HWY_MIN(early, blocks); ++i) read(from, i);
  }
  /// Of the next block, which begins there.
  HWY_INLINE V next(const Columns& from) {
    if constexpr (Numbers::plain) return hn::Zero(D());
    if (at_ + early < blocks_) read(from, early);
    return FromHalves(D(), hn::Load(hn::Rebind<std::uint16_t, D>(), kept_[at_++ % kept]));
  }

 private:
  static constexpr Index early = 2, kept = 4;
  HWY_INLINE void read([[maybe_unused]] const Columns& from, [[maybe_unused]] Index block) {
    if constexpr (!Numbers::plain) {
      // One by one: gathered in registers they would take the place of what is multiplied.
      volatile std::uint16_t* const to = kept_[(at_ + block) % kept];
#pragma GCC unroll 16
      for (Index j = 0; j < Columns::lanes; ++j) to[j] = bits_at(from[j] + block * Numbers::bytes);
    }
  }

  HWY_ALIGN std::uint16_t kept_[kept][Columns::lanes];
  Index blocks_, at_ = 0;
};

/// A block of such columns: take(row) for one of its rows after the other. They are turned in registers by 32 bits,
/// before they are made floats.
template <class Numbers, class Take>
HWY_INLINE void TurnBlock(const Columns& from, V scale, const Take& take) {
  const hn::RebindToUnsigned<D> whole;
  const hn::Repartition<std::uint64_t, D> pairs;
  constexpr Index kPieces = block / 4 / Numbers::together;
  // What is read together: all of a cache line where registers are as long, since lines that lie a power of two apart
  // drive each other out of the first-level cache.
  constexpr Index kSome = HWY_MIN(kPieces, Columns::lanes / 4);
  for (Index piece = 0; piece < kPieces; piece += kSome) {
    Bits r[4][kSome];
#pragma GCC unroll 4
    for (Index i = 0; i < 4; ++i)
#pragma GCC unroll 4
      for (Index q = 0; q < kSome; ++q) r[i][q] = from.sixteen(i, Numbers::skipped + 16 * (piece + q));
#pragma GCC unroll 4
    for (Index q = 0; q < kSome; ++q) {
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(whole, r[0][q], r[1][q])),
                 high01 = hn::BitCast(pairs, hn::InterleaveUpper(whole, r[0][q], r[1][q])),
                 low23 = hn::BitCast(pairs, hn::InterleaveLower(whole, r[2][q], r[3][q])),
                 high23 = hn::BitCast(pairs, hn::InterleaveUpper(whole, r[2][q], r[3][q]));
      const Bits turned[4] = {hn::BitCast(whole, hn::InterleaveLower(pairs, low01, low23)),
                              hn::BitCast(whole, hn::InterleaveUpper(pairs, low01, low23)),
                              hn::BitCast(whole, hn::InterleaveLower(pairs, high01, high23)),
                              hn::BitCast(whole, hn::InterleaveUpper(pairs, high01, high23))};
#pragma GCC unroll 4
      for (const Bits& bits : turned) {
        V part[Numbers::together];
        Numbers::Part(bits, scale, part);
#pragma GCC unroll 4
        for (Index i = 0; i < Numbers::together; ++i) take(part[i]);
      }
    }
  }
}

/// Whole blocks of such columns: row k of out is their numbers k.
template <class Numbers>
HWY_INLINE void TurnColumns(Columns from, Index blocks, float* HWY_RESTRICT out, Index out_stride, Fetch& fetch) {
  Scales<Numbers> scales(from, blocks);
  for (; blocks > 0; --blocks, from = from + Numbers::bytes) {
    fetch.some();
    TurnBlock<Numbers>(from, scales.next(from), [&](V row) HWY_ATTR {
      hn::StoreU(row, D(), out);
      out += out_stride;
    });
  }
}

/// The same multiplied by one row x. Not inlined, or addresses of all columns would be kept in registers.
template <class Numbers>
HWY_NOINLINE void MultiplyTurned(Columns from, const float* x, Index depth, Index block_depth, const float* added,
                                 float* out, Fetch fetch) {
  static_assert(block == panels::chunk);
  const D d;
  Scales<Numbers> scales(from, depth / block);
  for (Index k = 0; k < depth; k += block_depth) {
    V total = hn::Zero(d);
    for (Index chunk = k; chunk < HWY_MIN(k + block_depth, depth); chunk += block) {
      fetch.some();
      V sum = hn::Zero(d);
      TurnBlock<Numbers>(from, scales.next(from),
                         [&](V numbers) HWY_ATTR { sum = hn::MulAdd(hn::Set(d, *x++), numbers, sum); });
      total = hn::Add(total, sum);
      from = from + Numbers::bytes;
    }
    hn::StoreU(hn::Add(total, added ? hn::LoadU(d, added) : hn::Zero(d)), d, out);
    added = out;
  }
}
#endif

template <class Numbers>
void UnpackColumns(const Lines& b, Index depth, Index columns, float* out, Index out_stride,
                   [[maybe_unused]] const Ahead& ahead) {
  const Index step = bytes_of(b.kind, b.stride), blocks = depth / block;
  const std::byte* const from = b.data + bytes_of(b.kind, b.first);
  Index whole = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr Index kLanes = static_cast<Index>(hn::MaxLanes(D()));
  Fetch fetch(ahead, HWY_MAX(columns / kLanes * blocks, 1));
  for (; whole + kLanes <= columns; whole += kLanes)
    TurnColumns<Numbers>(Columns(from + whole * step, step), blocks, out + whole, out_stride, fetch);
#endif
  for (Index j = 0; j < columns; ++j)
    for (Index k = j < whole ? blocks * block : 0; k < depth; ++k)
      out[k * out_stride + j] = number(b.kind, from + j * step, k);
}

/// Of a matrix whose rows lie one behind the other.
constexpr Index kRowsAhead = 16;
template <class Numbers>
void UnpackRows(const Lines& b, Index depth, Index columns, float* out, Index out_stride, const Ahead& ahead) {
  const D d;
  const Index step = bytes_of(b.kind, b.stride), lanes = static_cast<Index>(hn::Lanes(d));
  const std::byte* from = b.data + bytes_of(b.kind, b.first);
  const Index bytes = bytes_of(b.kind, columns);
  Fetch fetch(ahead, depth);
  for (Index k = 0; k < depth; ++k, from += step, out += out_stride) {
    fetch.some();
    // A processor does not see that the rows of a wide matrix follow one another.
    __builtin_prefetch(from + kRowsAhead * step);
    __builtin_prefetch(from + kRowsAhead * step + bytes - 1);
    const Numbers numbers(from);
    if (columns == 2 * lanes) {
      hn::StoreU(numbers.at(d, 0), d, out);
      hn::StoreU(numbers.at(d, lanes), d, out + lanes);
      continue;
    }
    Index j = 0;
    for (; j + lanes <= columns; j += lanes) hn::StoreU(numbers.at(d, j), d, out + j);
    for (; j < columns; ++j) out[j] = number(b.kind, from, j);
  }
}

Index WholeColumns(Index columns) {
  return HWY_TARGET == HWY_SCALAR ? 0
                                  : columns / static_cast<Index>(hn::Lanes(D())) * static_cast<Index>(hn::Lanes(D()));
}

/// `count` registers of columns at once, so that no chain of multiply-adds waits for its own latency.
template <class Numbers, int count>
HWY_INLINE void MultiplyRegisters(const std::byte* from, Index step, const float* x, Index depth, bool more,
                                  float* sums, Index ahead) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V sum[count];
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) sum[i] = hn::Zero(d);
  for (Index k = 0; k < depth; ++k, from += step) {
    for (Index byte = 0; byte < Numbers::bytes / block * count * lanes; byte += Ahead::line)
      __builtin_prefetch(from + ahead + byte, 0, 2);
    const V left = hn::Set(d, x[k]);
    const Numbers numbers(from);
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) sum[i] = hn::MulAdd(left, numbers.at(d, i * lanes), sum[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i)
    hn::StoreU(hn::Add(sum[i], more ? hn::LoadU(d, sums + i * lanes) : hn::Zero(d)), d, sums + i * lanes);
}

void MultiplyChunk(const Lines& b, const float* x, Index depth, Index columns, bool more, float* sums, Index ahead) {
  const Index lanes = static_cast<Index>(hn::Lanes(D())), step = bytes_of(b.kind, b.stride);
  ByKind(b.kind, [&]<class Numbers>(std::type_identity<Numbers>) HWY_ATTR {
    if constexpr (Numbers::plain) {
      Index j = 0;
      const auto from = [&] { return b.data + bytes_of(b.kind, b.first + j); };
      for (; j + 8 * lanes <= columns; j += 8 * lanes)
        MultiplyRegisters<Numbers, 8>(from(), step, x, depth, more, sums + j, ahead);
      for (; j < columns; j += lanes) MultiplyRegisters<Numbers, 1>(from(), step, x, depth, more, sums + j, ahead);
    }
  });
}

void MultiplyColumns([[maybe_unused]] const Lines& b, [[maybe_unused]] const float* x, [[maybe_unused]] Index depth,
                     [[maybe_unused]] Index columns, [[maybe_unused]] Index block_depth,
                     [[maybe_unused]] const float* added, [[maybe_unused]] float* out, [[maybe_unused]] Index ahead) {
#if HWY_TARGET != HWY_SCALAR
  const Index step = bytes_of(b.kind, b.stride);
  for (Index j = 0; j < columns; j += Columns::lanes) {
    const std::byte* const from = b.data + bytes_of(b.kind, b.first + j * b.stride);
    const std::byte* const next = from + (j + Columns::lanes < columns ? Columns::lanes * step : ahead);
    const Fetch fetch({next, Columns::lanes, bytes_of(b.kind, depth), step, asks_near}, depth / block);
    ByKind(b.kind, [&]<class Numbers>(std::type_identity<Numbers>) HWY_ATTR {
      MultiplyTurned<Numbers>(Columns(from, step), x, depth, block_depth, added ? added + j : nullptr, out + j, fetch);
    });
  }
#endif
}

void Unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride, const Ahead& ahead) {
  ByKind(b.kind, [&]<class Numbers>(std::type_identity<Numbers>) HWY_ATTR {
    if constexpr (Numbers::plain)
      if (b.rows) return UnpackRows<Numbers>(b, depth, columns, out, out_stride, ahead);
    UnpackColumns<Numbers>(b, depth, columns, out, out_stride, ahead);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::stored
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::stored {

HWY_EXPORT(DecodeWhole);
HWY_EXPORT(Unpack);
HWY_EXPORT(WholeColumns);
HWY_EXPORT(MultiplyChunk);
HWY_EXPORT(MultiplyColumns);

namespace {
/// Whether none of the numbers of 16 bits, `step` bytes apart, has all of these bits set: those of its exponent.
template <Index step>
bool none_has_all(std::uint16_t exponent, const std::byte* from, Index count) {
  bool all = false;
  for (Index i = 0; i < count; ++i) all |= (bits_at(from + i * step) & exponent) == exponent;
  return !all;
}
constexpr std::uint16_t half_exponent = 0x7c00, bfloat_exponent = 0x7f80;
}  // namespace

Index bytes_of(Stored kind, Index count) {
  switch (kind) {
    case Stored::f16:
    case Stored::bf16:
      return 2 * count;
    case Stored::q8_0:
      assert(count % block == 0);
      return count / block * (2 + block);
    case Stored::f32:
      break;
  }
  return 4 * count;
}

float number(Stored kind, const std::byte* from, Index index) {
  if (kind == Stored::bf16) return bfloat_to_float(bits_at(from + 2 * index));
  if (kind == Stored::f16) return half_to_float(bits_at(from + 2 * index));
  assert(kind == Stored::q8_0);
  from += bytes_of(kind, index - index % block);
  return static_cast<float>(static_cast<std::int8_t>(from[2 + index % block])) * half_to_float(bits_at(from));
}

void decode(Stored kind, const std::byte* from, Index first, Index count, float* to) {
  const Index end = first + count;
  // A run of plain numbers may begin anywhere; one of Q8_0 has its first numbers inside a block, and its last.
  for (; first < end && !begins_at(kind, first); ++first) *to++ = number(kind, from, first);
  if (const Index blocks = (end - first) / block; blocks > 0) {
    HWY_DYNAMIC_DISPATCH(DecodeWhole)(kind, from + bytes_of(kind, first), blocks, to);
    first += blocks * block;
    to += blocks * block;
  }
  for (; first < end; ++first) *to++ = number(kind, from, first);
}

bool finite(Stored kind, const std::byte* from, Index first, Index count) {
  if (kind == Stored::bf16) return none_has_all<2>(bfloat_exponent, from + 2 * first, count);
  if (kind == Stored::f16) return none_has_all<2>(half_exponent, from + 2 * first, count);
  const Index begin = first - first % block, end = (first + count + block - 1) / block * block;
  return none_has_all<2 + block>(half_exponent, from + bytes_of(kind, begin), (end - begin) / block);
}

void unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride, const Ahead& ahead) {
  assert(begins_at(b.kind, b.first) && begins_at(b.kind, b.stride));
  HWY_DYNAMIC_DISPATCH(Unpack)(b, depth, columns, out, out_stride, ahead);
}

Index whole_columns(Index columns) {
  return HWY_DYNAMIC_DISPATCH(WholeColumns)(columns);
}

void multiply_chunk(const Lines& b, const float* x, Index depth, Index columns, bool more, float* sums, Index ahead) {
  assert(b.rows && depth <= panels::chunk && columns == whole_columns(columns));
  HWY_DYNAMIC_DISPATCH(MultiplyChunk)(b, x, depth, columns, more, sums, ahead);
}

void multiply_columns(const Lines& b, const float* x, Index depth, Index columns, Index block_depth, const float* added,
                      float* out, Index ahead) {
  assert(!b.rows && depth % panels::chunk == 0 && columns == whole_columns(columns));
  HWY_DYNAMIC_DISPATCH(MultiplyColumns)(b, x, depth, columns, block_depth, added, out, ahead);
}

}  // namespace headscope::stored
#endif
