#include "core/tensor/stored.h"

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "core/base/half.h"
#include "core/tensor/ahead.h"
#include "core/tensor/panels.h"
#include "core/tensor/stored_blocks.h"

// This file is compiled once per instruction set by foreach_target. What has SSSE3 has SSE4 as well, but for processors
// of 2006.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/tensor/stored.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target, or it would be compiled for one instruction set only.
#include "core/tensor/stored_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::stored {
namespace HWY_NAMESPACE {

// Numbers of a plain kind; those in blocks are read in stored_blocks.cpp.

/// So many are turned at once.
constexpr Index run = 32;
static_assert(run == panels::chunk);

// Numbers that begin at `from`, as vectors: at(d, i) are numbers i, i + 1, …; Part() takes the two that lie in every 32
// bits apart.

struct Bf16 {
  HWY_INLINE explicit Bf16(const std::byte* from) : from_(reinterpret_cast<const std::uint16_t*>(from)) {}
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> at(Tag d, Index i) const {
    const hn::RebindToUnsigned<Tag> whole;
    const hn::Rebind<std::uint16_t, Tag> halves;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(whole, hn::LoadU(halves, from_ + i))));
  }
  static HWY_INLINE void Part(Bits bits, V* out) {
    const hn::RebindToUnsigned<D> whole;
    out[0] = hn::BitCast(D(), hn::ShiftLeft<16>(bits));
    out[1] = hn::BitCast(D(), hn::And(bits, hn::Set(whole, 0xffff0000u)));
  }

 private:
  const std::uint16_t* from_;
};

struct F16 {
  HWY_INLINE explicit F16(const std::byte* from) : from_(reinterpret_cast<const std::uint16_t*>(from)) {}
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> at(Tag d, Index i) const {
    return FromHalves(d, hn::LoadU(hn::Rebind<std::uint16_t, Tag>(), from_ + i));
  }
  static HWY_INLINE void Part(Bits bits, V* out) {
    const D d;
    const hn::Rebind<std::uint16_t, D> halves;
    out[0] = FromHalves(d, hn::TruncateTo(halves, bits));
    out[1] = FromHalves(d, hn::TruncateTo(halves, hn::ShiftRight<16>(bits)));
  }

 private:
  const std::uint16_t* from_;
};

/// body(type_identity of the class that reads numbers of this kind)
template <class Body>
HWY_INLINE void ByKind(Stored kind, const Body& body) {
  if (kind == Stored::bf16)
    body(std::type_identity<Bf16>());
  else
    body(std::type_identity<F16>());
}

void Decode(Stored kind, const std::byte* HWY_RESTRICT from, Index count, float* HWY_RESTRICT to) {
  ByKind(kind, [&]<class Numbers>(std::type_identity<Numbers>) HWY_ATTR {
    const D d;
    const Numbers numbers(from);
    const Index lanes = static_cast<Index>(hn::Lanes(d));
    Index i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(numbers.at(d, i), d, to + i);
    for (; i < count; ++i) to[i] = number(kind, from, i);
  });
}

#if HWY_TARGET != HWY_SCALAR
/// A run of such columns: take(row) for one of its rows after the other. They are turned in registers by 32 bits,
/// before they are made floats.
template <class Numbers, class Take>
HWY_INLINE void TurnRun(const Columns& from, const Take& take) {
  constexpr Index kPieces = run / 8;
  // What is read together: all of a cache line where registers are as long, since lines that lie a power of two apart
  // drive each other out of the first-level cache.
  constexpr Index kSome = HWY_MIN(kPieces, Columns::lanes / 4);
  for (Index piece = 0; piece < kPieces; piece += kSome) {
    Bits r[kSome][4];
#pragma GCC unroll 4
    for (Index i = 0; i < 4; ++i)
#pragma GCC unroll 4
      for (Index q = 0; q < kSome; ++q) r[q][i] = from.sixteen(i, 16 * (piece + q));
#pragma GCC unroll 4
    for (Index q = 0; q < kSome; ++q) {
      Bits turned[4];
      TurnFour(r[q], turned);
#pragma GCC unroll 4
      for (const Bits& bits : turned) {
        V part[2];
        Numbers::Part(bits, part);
        take(part[0]), take(part[1]);
      }
    }
  }
}

/// Whole runs of such columns: row k of out is their numbers k.
template <class Numbers>
HWY_INLINE void TurnColumns(Columns from, Index runs, float* HWY_RESTRICT out, Index out_stride, Fetch& fetch) {
  for (; runs > 0; --runs, from = from + 2 * run) {
    fetch.some();
    TurnRun<Numbers>(from, [&](V row) HWY_ATTR {
      hn::StoreU(row, D(), out);
      out += out_stride;
    });
  }
}

/// The same multiplied by one row x. Not inlined, or addresses of all columns would be kept in registers.
template <class Numbers>
HWY_NOINLINE void MultiplyTurned(Columns from, const float* x, Index depth, Index block_depth, const float* added,
                                 float* out, Fetch fetch) {
  const D d;
  for (Index k = 0; k < depth; k += block_depth) {
    V total = hn::Zero(d);
    for (Index chunk = k; chunk < HWY_MIN(k + block_depth, depth); chunk += run) {
      fetch.some();
      V sum = hn::Zero(d);
      TurnRun<Numbers>(from, [&](V numbers) HWY_ATTR { sum = hn::MulAdd(hn::Set(d, *x++), numbers, sum); });
      total = hn::Add(total, sum);
      from = from + 2 * run;
    }
    hn::StoreU(hn::Add(total, added ? hn::LoadU(d, added) : hn::Zero(d)), d, out);
    added = out;
  }
}
#endif

template <class Numbers>
void UnpackColumns(const Lines& b, Index depth, Index columns, float* out, Index out_stride,
                   [[maybe_unused]] const Ahead& ahead) {
  const Index step = bytes_of(b.kind, b.stride), runs = depth / run;
  const std::byte* const from = b.data + bytes_of(b.kind, b.first);
  Index whole = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr Index kLanes = static_cast<Index>(hn::MaxLanes(D()));
  Fetch fetch(ahead, HWY_MAX(columns / kLanes * runs, 1));
  for (; whole + kLanes <= columns; whole += kLanes)
    TurnColumns<Numbers>(Columns(from + whole * step, step), runs, out + whole, out_stride, fetch);
#endif
  for (Index j = 0; j < columns; ++j)
    for (Index k = j < whole ? runs * run : 0; k < depth; ++k)
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

Index Beside() {
  return HWY_TARGET == HWY_SCALAR ? 0 : static_cast<Index>(hn::Lanes(D()));
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
    for (Index byte = 0; byte < 2 * count * lanes; byte += Ahead::line) __builtin_prefetch(from + ahead + byte, 0, 2);
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
    Index j = 0;
    const auto from = [&] { return b.data + bytes_of(b.kind, b.first + j); };
    for (; j + 8 * lanes <= columns; j += 8 * lanes)
      MultiplyRegisters<Numbers, 8>(from(), step, x, depth, more, sums + j, ahead);
    for (; j < columns; j += lanes) MultiplyRegisters<Numbers, 1>(from(), step, x, depth, more, sums + j, ahead);
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
    const Fetch fetch({next, Columns::lanes, bytes_of(b.kind, depth), step, asks_near}, depth / run);
    ByKind(b.kind, [&]<class Numbers>(std::type_identity<Numbers>) HWY_ATTR {
      MultiplyTurned<Numbers>(Columns(from, step), x, depth, block_depth, added ? added + j : nullptr, out + j, fetch);
    });
  }
#endif
}

void Unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride, const Ahead& ahead) {
  ByKind(b.kind, [&]<class Numbers>(std::type_identity<Numbers>) HWY_ATTR {
    if (b.rows) return UnpackRows<Numbers>(b, depth, columns, out, out_stride, ahead);
    UnpackColumns<Numbers>(b, depth, columns, out, out_stride, ahead);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::stored
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::stored {

HWY_EXPORT(Decode);
HWY_EXPORT(Unpack);
HWY_EXPORT(Beside);
HWY_EXPORT(MultiplyChunk);
HWY_EXPORT(MultiplyColumns);

namespace {
/// Whether none of the numbers of 16 bits, `step` bytes apart, has all of these bits set: those of its exponent.
bool none_has_all(std::uint16_t exponent, const std::byte* from, Index count, Index step) {
  bool all = false;
  for (Index i = 0; i < count; ++i) all |= (bits_at(from + i * step) & exponent) == exponent;
  return !all;
}
/// The same of scales of IQ1_M, whose exponents stand above the last two of four whole numbers.
bool no_exponent_is_all_set(const std::byte* from, Index blocks) {
  constexpr Index bytes = layout(Stored::iq1_m).bytes;
  bool all = false;
  for (Index i = 0; i < blocks; ++i, from += bytes)
    all |= (bits_at(from + bytes - 4) & 0xc000) == 0xc000 && (bits_at(from + bytes - 2) & 0x7000) == 0x7000;
  return !all;
}
constexpr std::uint16_t half_exponent = 0x7c00, bfloat_exponent = 0x7f80;
}  // namespace

float number(Stored kind, const std::byte* from, Index index) {
  if (kind == Stored::bf16) return bfloat_to_float(bits_at(from + 2 * index));
  if (kind == Stored::f16) return half_to_float(bits_at(from + 2 * index));
  return blocks::number(kind, from, index);
}

void decode(Stored kind, const std::byte* from, Index first, Index count, float* to) {
  if (plain(kind))
    HWY_DYNAMIC_DISPATCH(Decode)(kind, from + bytes_of(kind, first), count, to);
  else
    blocks::decode(kind, from, first, count, to);
}

bool finite(Stored kind, const std::byte* from, Index first, Index count) {
  if (kind == Stored::bf16) return none_has_all(bfloat_exponent, from + 2 * first, count, 2);
  if (kind == Stored::f16) return none_has_all(half_exponent, from + 2 * first, count, 2);
  const Layout& of = layout(kind);
  const Index begin = first / of.numbers, end = (first + count + of.numbers - 1) / of.numbers;
  if (kind == Stored::mxfp4) return blocks::finite(kind, from + begin * of.bytes, end - begin);
  if (kind == Stored::iq1_m) return no_exponent_is_all_set(from + begin * of.bytes, end - begin);
  // Whole numbers of few bits times a scale of few are far below the largest float32; scales of NVFP4 are all finite.
  return std::ranges::all_of(of.halves, [&](Index at) {
    return at < 0 || none_has_all(half_exponent, from + begin * of.bytes + at, end - begin, of.bytes);
  });
}

void unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride, const Ahead& ahead) {
  assert(begins_at(b.kind, b.first) && begins_at(b.kind, b.stride));
  if (plain(b.kind))
    HWY_DYNAMIC_DISPATCH(Unpack)(b, depth, columns, out, out_stride, ahead);
  else
    blocks::unpack(b, depth, columns, out, out_stride, ahead);
}

Index columns_beside(Stored kind) {
  return plain(kind) ? HWY_DYNAMIC_DISPATCH(Beside)() : blocks::columns_beside();
}

void multiply_chunk(const Lines& b, const float* x, Index depth, Index columns, bool more, float* sums, Index ahead) {
  assert(b.rows && depth <= panels::chunk && columns == whole_columns(b.kind, columns));
  HWY_DYNAMIC_DISPATCH(MultiplyChunk)(b, x, depth, columns, more, sums, ahead);
}

void multiply_columns(const Lines& b, const float* x, Index depth, Index columns, Index block_depth, const float* added,
                      float* out, Index ahead) {
  assert(!b.rows && depth % panels::chunk == 0 && columns == whole_columns(b.kind, columns));
  if (plain(b.kind))
    HWY_DYNAMIC_DISPATCH(MultiplyColumns)(b, x, depth, columns, block_depth, added, out, ahead);
  else
    blocks::multiply_columns(b, x, depth, columns, block_depth, added, out, ahead);
}

}  // namespace headscope::stored
#endif
