#include "core/tensor/stored.h"

#include <cassert>
#include <cstring>
#include <type_traits>

#include "core/base/half.h"

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

// Whether this instruction set converts numbers of 16 bits by itself, and not Highway in several steps.
#undef HEADSCOPE_CONVERTS_HALVES
#if HWY_TARGET == HWY_SCALAR || (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2)
#define HEADSCOPE_CONVERTS_HALVES 0
#else
#define HEADSCOPE_CONVERTS_HALVES 1
#endif

// 32 numbers of one kind that begin at `from`, as vectors: at(d, i) are numbers i, i + 1, …

struct Bf16 {
  static constexpr bool plain = true;  // each number by itself: at() reads on behind the 32
  static constexpr Index bytes = 2 * block;
  HWY_INLINE explicit Bf16(const std::byte* from) : from_(reinterpret_cast<const std::uint16_t*>(from)) {}
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> at(Tag d, Index i) const {
    const hn::RebindToUnsigned<Tag> whole;
    const hn::Rebind<std::uint16_t, Tag> halves;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(whole, hn::LoadU(halves, from_ + i))));
  }

 private:
  const std::uint16_t* from_;
};

struct F16 {
  static constexpr bool plain = true;
  static constexpr Index bytes = 2 * block;
  HWY_INLINE explicit F16(const std::byte* from) : from_(reinterpret_cast<const std::uint16_t*>(from)) {}
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> at(Tag d, Index i) const {
    const hn::Rebind<std::uint16_t, Tag> halves;
    const hn::Rebind<hwy::float16_t, Tag> half;
    const auto bits = hn::LoadU(halves, from_ + i);
    const auto numbers = hn::PromoteTo(d, hn::BitCast(half, bits));
#if HEADSCOPE_CONVERTS_HALVES
    return numbers;
#else  // which takes infinity and NaN for numbers
    const hn::RebindToUnsigned<Tag> whole;
    const auto wide = hn::PromoteTo(whole, bits), exponent = hn::Set(whole, 0x7c00u);
    const auto special =
        hn::Or(hn::Set(whole, 0x7f800000u), hn::Or(hn::ShiftLeft<16>(hn::And(wide, hn::Set(whole, 0x8000u))),
                                                   hn::ShiftLeft<13>(hn::And(wide, hn::Set(whole, 0x3ffu)))));
    return hn::IfThenElse(hn::RebindMask(d, hn::Eq(hn::And(wide, exponent), exponent)), hn::BitCast(d, special),
                          numbers);
#endif
  }

 private:
  const std::uint16_t* from_;
};

struct Q8 {
  static constexpr bool plain = false;
  static constexpr Index bytes = 2 + block;
  HWY_INLINE explicit Q8(const std::byte* from)
      : scale_(Scale(from)), from_(reinterpret_cast<const std::int8_t*>(from + 2)) {}
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> at(Tag d, Index i) const {
    const hn::Rebind<std::int32_t, Tag> whole;
    const hn::Rebind<std::int8_t, Tag> small;
    return hn::Mul(hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(small, from_ + i))), hn::Set(d, scale_));
  }

 private:
  static HWY_INLINE float Scale(const std::byte* from) {
    std::uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
#if !HEADSCOPE_CONVERTS_HALVES
    return half_to_float(bits);
#else
    const hn::FixedTag<float, 4> four;
    const hn::Rebind<std::uint16_t, decltype(four)> halves;
    const hn::Rebind<hwy::float16_t, decltype(four)> half;
    return hn::GetLane(hn::PromoteTo(four, hn::BitCast(half, hn::Set(halves, bits))));
#endif
  }
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

// Turned in registers: as many columns at a time as a vector has numbers, up to 8.
using Few = hn::CappedTag<float, 8>;

/// Whole blocks of as many columns as Few has numbers, `step` bytes apart: row k of out is their numbers k.
template <class Numbers>
HWY_INLINE void TurnColumns(const std::byte* HWY_RESTRICT from, [[maybe_unused]] Index step, Index blocks,
                            float* HWY_RESTRICT out, Index out_stride) {
  const Few d;
#if HWY_TARGET == HWY_SCALAR
  for (Index at = 0; at < blocks; ++at)
    for (Index i = 0; i < block; ++i)
      hn::Store(Numbers(from + at * Numbers::bytes).at(d, i), d, out + (at * block + i) * out_stride);
#else
  constexpr Index kLanes = static_cast<Index>(hn::MaxLanes(Few()));
  static_assert(kLanes == 4 || kLanes == 8);
  const hn::Repartition<double, Few> pairs;
  const auto turn = [&](const Numbers* four, Index i, hn::Vec<Few>* out_k) HWY_ATTR {
    const auto r0 = four[0].at(d, i), r1 = four[1].at(d, i), r2 = four[2].at(d, i), r3 = four[3].at(d, i);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1)),
               high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1)),
               low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3)),
               high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
    out_k[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
    out_k[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
    out_k[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
    out_k[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
  };
  for (Index at = 0; at < blocks; ++at, from += Numbers::bytes) {
    const Numbers first[4] = {Numbers(from), Numbers(from + step), Numbers(from + 2 * step), Numbers(from + 3 * step)};
    const std::byte* const other = from + (kLanes == 8 ? 4 * step : 0);
    const Numbers second[4] = {Numbers(other), Numbers(other + step), Numbers(other + 2 * step),
                               Numbers(other + 3 * step)};
    for (Index i = 0; i < block; i += kLanes, out += kLanes * out_stride) {
      hn::Vec<Few> a[4], b[4];  // of every four numbers of a register one k: k and k + 4
      turn(first, i, a);
      if constexpr (kLanes == 8) turn(second, i, b);
      for (int k = 0; k < 4; ++k) {
        if constexpr (kLanes == 8) {
          hn::StoreU(hn::ConcatLowerLower(d, b[k], a[k]), d, out + k * out_stride);
          hn::StoreU(hn::ConcatUpperUpper(d, b[k], a[k]), d, out + (k + 4) * out_stride);
        } else {
          hn::StoreU(a[k], d, out + k * out_stride);
        }
      }
    }
  }
#endif
}

template <class Numbers>
void UnpackColumns(const Lines& b, Index depth, Index columns, float* out, Index out_stride) {
  const Index step = bytes_of(b.kind, b.stride), lanes = static_cast<Index>(hn::Lanes(Few()));
  const Index whole = columns / lanes * lanes, blocks = depth / block;
  const std::byte* const from = b.from + bytes_of(b.kind, b.first);
  for (Index j = 0; j < whole; j += lanes) TurnColumns<Numbers>(from + j * step, step, blocks, out + j, out_stride);
  for (Index j = 0; j < columns; ++j)
    for (Index k = j < whole ? blocks * block : 0; k < depth; ++k)
      out[k * out_stride + j] = number(b.kind, from + j * step, k);
}

/// Of a matrix whose rows lie one behind the other.
constexpr Index kRowsAhead = 16;
template <class Numbers>
void UnpackRows(const Lines& b, Index depth, Index columns, float* out, Index out_stride) {
  const D d;
  const Index step = bytes_of(b.kind, b.stride), lanes = static_cast<Index>(hn::Lanes(d));
  const std::byte* from = b.from + bytes_of(b.kind, b.first);
  for (Index k = 0; k < depth; ++k, from += step, out += out_stride) {
    // A processor does not see that the rows of a wide matrix follow one another.
    for (Index byte = 0; byte < bytes_of(b.kind, columns); byte += 64)
      __builtin_prefetch(from + kRowsAhead * step + byte);
    const Numbers numbers(from);
    Index j = 0;
    for (; j + lanes <= columns; j += lanes) hn::StoreU(numbers.at(d, j), d, out + j);
    for (; j < columns; ++j) out[j] = number(b.kind, from, j);
  }
}

void Unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride) {
  ByKind(b.kind, [&]<class Numbers>(std::type_identity<Numbers>) HWY_ATTR {
    if constexpr (Numbers::plain)
      if (b.rows) return UnpackRows<Numbers>(b, depth, columns, out, out_stride);
    UnpackColumns<Numbers>(b, depth, columns, out, out_stride);
  });
}

// Sums run in chunks of so many blocks, whose results are added up (core/tensor/panels.cpp says why).
constexpr Index kChunk = 8;

/// R rows of a times C columns of B, which lie `step` bytes apart. Numbers behind the last whole block of a column (of
/// the plain kinds alone) are added one by one.
template <class Numbers, int R, int C>
HWY_INLINE void Block(const float* HWY_RESTRICT a, Index a_stride, Index depth, const std::byte* HWY_RESTRICT b,
                      Index step, Stored kind, const float* bias, float* c, Index c_stride) {
  const D d;
  const Index blocks = depth / block;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V sum[R][C];
  HWY_ALIGN float total[R][C][HWY_MAX_BYTES / sizeof(float)];
  for (Index from = 0; from == 0 || from < blocks; from += kChunk) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < C; ++j) sum[r][j] = hn::Zero(d);
    const Index end = HWY_MIN(blocks, from + kChunk);
    for (Index at = from; at < end; ++at) {
      const std::byte* const column = b + at * Numbers::bytes;
      const float* const row = a + at * block;
#pragma GCC unroll 8
      for (int j = 0; j < C; ++j) {
        const Numbers numbers(column + j * step);
#pragma GCC unroll 8
        for (Index i = 0; i < block; i += lanes) {
          const V y = numbers.at(d, i);
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) sum[r][j] = hn::MulAdd(hn::LoadU(d, row + r * a_stride + i), y, sum[r][j]);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < C; ++j)
        hn::Store(from > 0 ? hn::Add(sum[r][j], hn::Load(d, total[r][j])) : sum[r][j], d, total[r][j]);
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < C; ++j) {
      float all = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, total[r][j])));
      for (Index k = blocks * block; k < depth; ++k) all += a[r * a_stride + k] * number(kind, b + j * step, k);
      c[r * c_stride + j] = all + (bias ? bias[j] : 0.0f);
    }
}

// Side by side: as many chains of multiply-adds as hide their latency, and no more than registers hold.
template <int R>
constexpr int kBeside = R == 1   ? 8
                        : R == 2 ? 4
                        : R <= 4 ? 2
                                 : 1;

/// R rows of a times all columns of a B whose columns lie one behind the other.
template <class Numbers, int R>
HWY_INLINE void AlongColumns(const float* a, Index a_stride, Index depth, const Lines& b, Index columns,
                             const float* bias, float* c, Index c_stride) {
  constexpr int kColumns = kBeside<R>;
  const Index step = bytes_of(b.kind, b.stride);
  const std::byte* const first = b.from + bytes_of(b.kind, b.first);
  Index j = 0;
  for (; j + kColumns <= columns; j += kColumns)
    Block<Numbers, R, kColumns>(a, a_stride, depth, first + j * step, step, b.kind, bias ? bias + j : nullptr, c + j,
                                c_stride);
  if constexpr (kColumns > 1)
    for (; j < columns; ++j)
      Block<Numbers, R, 1>(a, a_stride, depth, first + j * step, step, b.kind, bias ? bias + j : nullptr, c + j,
                           c_stride);
}

// Rows of B whose products are summed in registers; c holds the sums of all before (core/tensor/panels.cpp says why).
constexpr Index kRun = 32;

/// R rows of a times C registers of columns of B's next rows, `step` bytes apart: c = added + product. Null adds
/// nothing.
template <class Numbers, int R, int C>
HWY_INLINE void RowBlock(const float* HWY_RESTRICT a, Index a_stride, Index depth, const std::byte* HWY_RESTRICT b,
                         Index step, const float* added, Index added_stride, float* c, Index c_stride) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V sum[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j) sum[r][j] = hn::Zero(d);
  for (Index k = 0; k < depth; ++k, b += step) {
    const Numbers numbers(b);
    V y[C];
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j) y[j] = numbers.at(d, j * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V x = hn::Set(d, a[r * a_stride + k]);
#pragma GCC unroll 8
      for (int j = 0; j < C; ++j) sum[r][j] = hn::MulAdd(x, y[j], sum[r][j]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j)
      hn::StoreU(added ? hn::Add(sum[r][j], hn::LoadU(d, added + r * added_stride + j * lanes)) : sum[r][j], d,
                 c + r * c_stride + j * lanes);
}

/// The same of fewer columns than a register has numbers: of copies with zeros behind them.
template <class Numbers, int R>
HWY_NOINLINE void RowTail(const float* a, Index a_stride, Index depth, const std::byte* b, Index step, Index columns,
                          const float* added, Index added_stride, float* c, Index c_stride) {
  constexpr Index kLanes = HWY_MAX_BYTES / sizeof(float), kWide = 2 * kLanes;  // bytes of a row's numbers
  std::byte numbers[kRun * kWide] = {};
  float add[R * kLanes] = {}, sum[R * kLanes];
  for (Index k = 0; k < depth; ++k)
    std::memcpy(numbers + k * kWide, b + k * step, static_cast<std::size_t>(2 * columns));
  const auto bytes = static_cast<std::size_t>(columns) * sizeof(float);
  for (int r = 0; added && r < R; ++r) std::memcpy(add + r * kLanes, added + r * added_stride, bytes);
  RowBlock<Numbers, R, 1>(a, a_stride, depth, numbers, kWide, added ? add : nullptr, kLanes, sum, kLanes);
  for (int r = 0; r < R; ++r) std::memcpy(c + r * c_stride, sum + r * kLanes, bytes);
}

/// R rows of a times all columns of a B whose rows lie one behind the other.
template <class Numbers, int R>
HWY_INLINE void AlongRows(const float* a, Index a_stride, Index depth, const Lines& b, Index columns, const float* bias,
                          float* c, Index c_stride) {
  // Two beside eight rows where there are 32 registers.
  constexpr int kRegisters =
      (HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86) || HWY_ARCH_ARM_A64 ? HWY_MAX(kBeside<R>, 2) : kBeside<R>;
  const Index step = bytes_of(b.kind, b.stride), lanes = static_cast<Index>(hn::Lanes(D()));
  const std::byte* from = b.from + bytes_of(b.kind, b.first);
  for (Index k = 0; k < depth; k += kRun, a += kRun, from += kRun * step) {
    const Index run = HWY_MIN(kRun, depth - k), added_stride = k > 0 ? c_stride : 0;
    const float* const added = k > 0 ? c : bias;
    const auto at = [&](Index j) { return added ? added + j : nullptr; };
    Index j = 0;
    for (; j + kRegisters * lanes <= columns; j += kRegisters * lanes)
      RowBlock<Numbers, R, kRegisters>(a, a_stride, run, from + 2 * j, step, at(j), added_stride, c + j, c_stride);
    if constexpr (kRegisters > 1)
      for (; j + lanes <= columns; j += lanes)
        RowBlock<Numbers, R, 1>(a, a_stride, run, from + 2 * j, step, at(j), added_stride, c + j, c_stride);
    if (j < columns)
      RowTail<Numbers, R>(a, a_stride, run, from + 2 * j, step, columns - j, at(j), added_stride, c + j, c_stride);
  }
}

constexpr int kRows = 8;

template <class Numbers, int R = kRows>
HWY_INLINE void RowsOf(Index rows, const float* a, Index a_stride, Index depth, const Lines& b, Index columns,
                       const float* bias, float* c, Index c_stride) {
  if (rows == R) {
    if constexpr (Numbers::plain)
      if (b.rows) return AlongRows<Numbers, R>(a, a_stride, depth, b, columns, bias, c, c_stride);
    AlongColumns<Numbers, R>(a, a_stride, depth, b, columns, bias, c, c_stride);
  } else if constexpr (R > 1) {
    RowsOf<Numbers, R - 1>(rows, a, a_stride, depth, b, columns, bias, c, c_stride);
  }
}

void Multiply(const float* a, Index a_stride, Index rows, Index depth, const Lines& b, Index columns, const float* bias,
              float* c, Index c_stride) {
  ByKind(b.kind, [&]<class Numbers>(std::type_identity<Numbers>) HWY_ATTR {
    for (Index r = 0; r < rows; r += kRows)
      RowsOf<Numbers>(HWY_MIN(rows - r, Index{kRows}), a + r * a_stride, a_stride, depth, b, columns, bias,
                      c + r * c_stride, c_stride);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::stored
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::stored {

HWY_EXPORT(DecodeWhole);
HWY_EXPORT(Unpack);
HWY_EXPORT(Multiply);

namespace {
std::uint16_t bits_at(const std::byte* from, Index byte) {
  std::uint16_t bits;
  std::memcpy(&bits, from + byte, sizeof bits);
  return bits;
}

/// Whether none of the numbers of 16 bits, `step` bytes apart, has all of these bits set: those of its exponent.
template <Index step>
bool none_has_all(std::uint16_t exponent, const std::byte* from, Index count) {
  bool all = false;
  for (Index i = 0; i < count; ++i) all |= (bits_at(from, i * step) & exponent) == exponent;
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
  if (kind == Stored::bf16) return bfloat_to_float(bits_at(from, 2 * index));
  if (kind == Stored::f16) return half_to_float(bits_at(from, 2 * index));
  assert(kind == Stored::q8_0);
  from += bytes_of(kind, index - index % block);
  return static_cast<float>(static_cast<std::int8_t>(from[2 + index % block])) * half_to_float(bits_at(from, 0));
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

void unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride) {
  assert(begins_at(b.kind, b.first) && begins_at(b.kind, b.stride));
  HWY_DYNAMIC_DISPATCH(Unpack)(b, depth, columns, out, out_stride);
}

void multiply(const float* a, Index a_stride, Index rows, Index depth, const Lines& b, Index columns, const float* bias,
              float* c, Index c_stride) {
  assert(begins_at(b.kind, b.first) && begins_at(b.kind, b.stride) && begins_at(b.kind, depth));
  HWY_DYNAMIC_DISPATCH(Multiply)(a, a_stride, rows, depth, b, columns, bias, c, c_stride);
}

}  // namespace headscope::stored
#endif
