#include "core/tensor/stored_blocks.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/base/half.h"
#include "core/tensor/ahead.h"
#include "core/tensor/panels.h"

// This file is compiled once per instruction set by foreach_target.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/tensor/stored_blocks.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target, or they would be compiled for one instruction set only.
#include "core/tensor/gguf_types-inl.h"
#include "core/tensor/stored_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::stored {
namespace HWY_NAMESPACE {

constexpr Index chunk = panels::chunk;
/// Registers of columns that are multiplied side by side.
constexpr int kBeside = 2;

/// One block, as gguf_blocks-inl.h asks for it.
class OneBlock {
 public:
  using Bits = std::uint32_t;
  using Floats = float;
  HWY_INLINE explicit OneBlock(const std::byte* from) : from_(from) {}
  template <Index at>
  HWY_INLINE Bits word(Index w) const {
    return head_at(at + 4 * w);
  }
  template <Index at>
  HWY_INLINE Bits head() const {
    return head_at(at);
  }
  template <Index at>
  HWY_INLINE void heads(Bits (&out)[4]) const {
    for (Index i = 0; i < 4; ++i) out[i] = head_at(at + 4 * i);
  }
  static HWY_INLINE Bits set(std::uint32_t bits) { return bits; }
  static HWY_INLINE Bits right(Bits bits, int places) { return bits >> places; }
  static HWY_INLINE Bits left(Bits bits, int places) { return bits << places; }
  static HWY_INLINE Bits if_below(Bits bits, std::uint32_t limit, Bits yes, Bits no) { return bits < limit ? yes : no; }
  static HWY_INLINE Bits in_table(const std::int8_t (&table)[16], Bits places) {
    Bits found = 0;
    for (int i = 0; i < 32; i += 8) found |= Bits{static_cast<std::uint8_t>(table[places >> i & 15])} << i;
    return found;
  }
  static HWY_INLINE Bits in_grid(const std::uint32_t* points, Bits place) { return points[place]; }
  static HWY_INLINE float whole(Bits number) { return static_cast<float>(static_cast<std::int32_t>(number)); }
  template <int i>
  static HWY_INLINE float of_byte(Bits bytes) {
    return static_cast<float>(static_cast<std::int8_t>(bytes >> 8 * i));
  }
  static HWY_INLINE float half(Bits low) { return half_to_float(static_cast<std::uint16_t>(low)); }
  static HWY_INLINE float as_float(Bits bits) { return std::bit_cast<float>(bits); }

 private:
  HWY_INLINE Bits head_at(Index at) const {
    Bits bits;
    std::memcpy(&bits, from_ + at, sizeof bits);
    return bits;
  }
  const std::byte* from_;
};

/// take(number) for one number of a block after the other, of chunks [begin, end); begun() before each.
template <class Type, class Block, class Begun, class Take>
HWY_INLINE void EachNumber(const Block& block, Index begin, Index end, const Begun& begun, const Take& take) {
  Type type(block);
  for (Index c = begin; c < end; ++c) {
    begun();
    type.chunk(c);
#pragma GCC unroll 2
    for (Index half = 0; half < 2; ++half)
#pragma GCC unroll 4
      for (Index w = 4 * half; w < 4 * half + 4; ++w) {
        const typename Block::Bits bytes = type.bytes(w);
        take(type.number(Block::template of_byte<0>(bytes), half));
        take(type.number(Block::template of_byte<1>(bytes), half));
        take(type.number(Block::template of_byte<2>(bytes), half));
        take(type.number(Block::template of_byte<3>(bytes), half));
      }
  }
}

/// Chunks [begin, end) of the numbers from there on, `stride` floats from one to the next.
template <class Type>
HWY_INLINE void DecodeChunks(const std::byte* from, Index begin, Index end, float* to, Index stride) {
  constexpr Index kChunks = Type::numbers / chunk;
  while (begin < end) {
    const Index block = begin / kChunks, next = HWY_MIN(end, (block + 1) * kChunks);
    EachNumber<Type>(
        OneBlock(from + block * Type::size), begin - block * kChunks, next - block * kChunks, [] {},
        [&](float number) {
          *to = number;
          to += stride;
        });
    begin = next;
  }
}

void DecodeBlocks(Stored kind, const std::byte* from, Index begin, Index end, float* to) {
  ByBlockType<OneBlock>(
      kind, [&]<class Type>(std::type_identity<Type>) HWY_ATTR { DecodeChunks<Type>(from, begin, end, to, 1); });
}

float NumberInBlocks(Stored kind, const std::byte* from, Index index) {
  float number = 0;
  ByBlockType<OneBlock>(kind, [&]<class Type>(std::type_identity<Type>) HWY_ATTR {
    const OneBlock block(from + index / Type::numbers * Type::size);
    Type type(block);
    type.chunk(index % Type::numbers / chunk);
    const std::uint32_t bytes = type.bytes(index % chunk / 4) >> index % 4 * 8;
    number = type.number(OneBlock::of_byte<0>(bytes), index % chunk / (chunk / 2));
  });
  return number;
}

#if HWY_TARGET != HWY_SCALAR
using Words = Bits;

/// A block of each of `count` times as many columns as a register has numbers. More than one, and there are more sums
/// than wait for their own latency.
template <int count>
class TurnedBlock {
 public:
  struct Bits {
    Words v[count];
  };
  struct Floats {
    V v[count];
  };

  HWY_INLINE TurnedBlock(const std::byte* from, Index step) {
    for (int i = 0; i < count; ++i) columns_[i] = Columns(from + i * Columns::lanes * step, step);
  }
  /// Goes on to the block so many bytes later.
  HWY_INLINE void advance(Index bytes) {
    for (Columns& columns : columns_) columns = columns + bytes;
  }
  /// What word() gives from now on.
  template <class Type>
  HWY_INLINE void read() {
    for (Index piece = 0; piece < Type::pieces; ++piece)
#pragma GCC unroll 2
      for (int i = 0; i < count; ++i) {
        Words turned[4];
        columns_[i].turned(Type::begin + 16 * piece, turned);
#pragma GCC unroll 4
        for (Index w = 0; w < 4; ++w) hn::Store(turned[w], Tag(), kept_[i][Type::begin / 4 + 4 * piece + w]);
      }
  }
  template <Index at>
  HWY_INLINE Bits word(Index w) const {
    return of([&](int i) HWY_ATTR { return hn::Load(Tag(), kept_[i][at / 4 + w]); });
  }
  template <Index at>
  HWY_INLINE Bits head() const {
    // Sixteen bytes that lie in the block.
    constexpr Index kFrom = at < 12 ? at : at - 12;
    return of([&](int i) HWY_ATTR {
      Words turned[4];
      columns_[i].turned(kFrom, turned);
      return turned[(at - kFrom) / 4];
    });
  }
  template <Index at>
  HWY_INLINE void heads(Bits (&out)[4]) const {
    for (int i = 0; i < count; ++i) {
      Words turned[4];
      columns_[i].turned(at, turned);
      for (int w = 0; w < 4; ++w) out[w].v[i] = turned[w];
    }
  }

  static HWY_INLINE Bits set(std::uint32_t bits) {
    return of([&](int) HWY_ATTR { return hn::Set(Tag(), bits); });
  }
  static HWY_INLINE Bits right(const Bits& bits, int places) {
    return of([&](int i) HWY_ATTR { return hn::ShiftRightSame(bits.v[i], places); });
  }
  static HWY_INLINE Bits left(const Bits& bits, int places) {
    return of([&](int i) HWY_ATTR { return hn::ShiftLeftSame(bits.v[i], places); });
  }
  static HWY_INLINE Bits if_below(const Bits& bits, std::uint32_t limit, const Bits& yes, const Bits& no) {
    return of([&](int i)
                  HWY_ATTR { return hn::IfThenElse(hn::Lt(bits.v[i], hn::Set(Tag(), limit)), yes.v[i], no.v[i]); });
  }
  static HWY_INLINE Bits in_table(const std::int8_t (&table)[16], const Bits& places) {
    const hn::Repartition<std::int8_t, D> bytes;
    return of([&](int i) HWY_ATTR {
      return hn::BitCast(Tag(), hn::TableLookupBytes(hn::LoadDup128(bytes, table), hn::BitCast(bytes, places.v[i])));
    });
  }
  static HWY_INLINE Bits in_grid(const std::uint32_t* points, const Bits& places) {
    return of([&](int i) HWY_ATTR { return hn::GatherIndex(Tag(), points, hn::BitCast(Whole(), places.v[i])); });
  }
  static HWY_INLINE Floats whole(const Bits& number) {
    return floats([&](int i) HWY_ATTR { return hn::ConvertTo(D(), hn::BitCast(Whole(), number.v[i])); });
  }
  template <int byte>
  static HWY_INLINE Floats of_byte(const Bits& bytes) {
    return floats([&](int i) HWY_ATTR {
      const auto up = hn::BitCast(Whole(), byte < 3 ? hn::ShiftLeft<24 - 8 * byte>(bytes.v[i]) : bytes.v[i]);
      return hn::ConvertTo(D(), hn::ShiftRight<24>(up));
    });
  }
  static HWY_INLINE Floats half(const Bits& low) {
    return floats([&](int i) HWY_ATTR {
      return FromHalves(D(),
                        hn::TruncateTo(hn::Rebind<std::uint16_t, D>(), hn::And(low.v[i], hn::Set(Tag(), 0xffffu))));
    });
  }
  static HWY_INLINE Floats as_float(const Bits& bits) {
    return floats([&](int i) HWY_ATTR { return hn::BitCast(D(), bits.v[i]); });
  }

  friend HWY_INLINE Bits operator&(const Bits& a, const Bits& b) {
    return of([&](int i) HWY_ATTR { return hn::And(a.v[i], b.v[i]); });
  }
  friend HWY_INLINE Bits operator|(const Bits& a, const Bits& b) {
    return of([&](int i) HWY_ATTR { return hn::Or(a.v[i], b.v[i]); });
  }
  friend HWY_INLINE Bits operator^(const Bits& a, const Bits& b) {
    return of([&](int i) HWY_ATTR { return hn::Xor(a.v[i], b.v[i]); });
  }
  friend HWY_INLINE Bits operator+(const Bits& a, const Bits& b) {
    return of([&](int i) HWY_ATTR { return hn::Add(a.v[i], b.v[i]); });
  }
  friend HWY_INLINE Bits operator-(const Bits& a, const Bits& b) {
    return of([&](int i) HWY_ATTR { return hn::Sub(a.v[i], b.v[i]); });
  }
  friend HWY_INLINE Bits operator*(const Bits& a, const Bits& b) {
    return of([&](int i) HWY_ATTR { return hn::Mul(a.v[i], b.v[i]); });
  }
  friend HWY_INLINE Floats operator*(const Floats& a, const Floats& b) {
    return floats([&](int i) HWY_ATTR { return hn::Mul(a.v[i], b.v[i]); });
  }
  friend HWY_INLINE Floats operator+(const Floats& a, const Floats& b) {
    return floats([&](int i) HWY_ATTR { return hn::Add(a.v[i], b.v[i]); });
  }
  friend HWY_INLINE Floats operator-(const Floats& a, const Floats& b) {
    return floats([&](int i) HWY_ATTR { return hn::Sub(a.v[i], b.v[i]); });
  }

 private:
  using Tag = hn::RebindToUnsigned<D>;
  using Whole = hn::RebindToSigned<D>;
  template <class Each>
  static HWY_INLINE Bits of(const Each& each) {
    Bits out;
#pragma GCC unroll 2
    for (int i = 0; i < count; ++i) out.v[i] = each(i);
    return out;
  }
  template <class Each>
  static HWY_INLINE Floats floats(const Each& each) {
    Floats out;
#pragma GCC unroll 2
    for (int i = 0; i < count; ++i) out.v[i] = each(i);
    return out;
  }

  static constexpr Index words = 52;  // of the longest
  HWY_ALIGN std::uint32_t kept_[count][words][Columns::lanes];
  Columns columns_[count];
};

/// Whole blocks of such columns: row k of out is their numbers k.
template <class Type>
HWY_INLINE void TurnBlocks(const std::byte* from, Index step, Index blocks, float* HWY_RESTRICT out, Index out_stride,
                           Fetch& fetch) {
  TurnedBlock<1> block(from, step);
  for (; blocks > 0; --blocks, block.advance(Type::size)) {
    block.template read<Type>();
    EachNumber<Type>(
        block, 0, Type::numbers / chunk, [&] { fetch.some(); },
        [&](const TurnedBlock<1>::Floats& row) HWY_ATTR {
          hn::StoreU(row.v[0], D(), out);
          out += out_stride;
        });
  }
}

/// One row x times the columns of a panel. Not inlined, or addresses of all columns would be kept in registers.
template <class Type>
HWY_NOINLINE void MultiplyBlocks(const std::byte* from, Index step, const float* x, Index depth, Index block_depth,
                                 const float* added, float* out, Fetch fetch) {
  const D d;
  using Block = TurnedBlock<kBeside>;
  Block block(from, step);
  for (Index k = 0; k < depth; k += block_depth) {
    V total[kBeside], sum[kBeside];
    for (int i = 0; i < kBeside; ++i) total[i] = sum[i] = hn::Zero(d);
    for (Index next = HWY_MIN(k + block_depth, depth), at = k; at < next; at += Type::numbers) {
      block.template read<Type>();
      EachNumber<Type>(
          block, 0, Type::numbers / chunk,
          [&]() HWY_ATTR {
            fetch.some();
            for (int i = 0; i < kBeside; ++i) total[i] = hn::Add(total[i], sum[i]), sum[i] = hn::Zero(d);
          },
          [&](const Block::Floats& numbers) HWY_ATTR {
            const V left = hn::Set(d, *x++);
            for (int i = 0; i < kBeside; ++i) sum[i] = hn::MulAdd(left, numbers.v[i], sum[i]);
          });
      block.advance(Type::size);
    }
    for (int i = 0; i < kBeside; ++i) {
      const Index at = i * Columns::lanes;
      total[i] = hn::Add(total[i], sum[i]);
      hn::StoreU(hn::Add(total[i], added ? hn::LoadU(d, added + at) : hn::Zero(d)), d, out + at);
    }
    added = out;
  }
}
#endif

Index BlocksBeside() {
  return HWY_TARGET == HWY_SCALAR ? 0 : kBeside * static_cast<Index>(hn::Lanes(D()));
}

void MultiplyBlockColumns([[maybe_unused]] const Lines& b, [[maybe_unused]] const float* x,
                          [[maybe_unused]] Index depth, [[maybe_unused]] Index columns,
                          [[maybe_unused]] Index block_depth, [[maybe_unused]] const float* added,
                          [[maybe_unused]] float* out, [[maybe_unused]] Index ahead) {
#if HWY_TARGET != HWY_SCALAR
  const Index step = bytes_of(b.kind, b.stride), beside = BlocksBeside();
  for (Index j = 0; j < columns; j += beside) {
    const std::byte* const from = b.data + bytes_of(b.kind, b.first + j * b.stride);
    const std::byte* const next = from + (j + beside < columns ? beside * step : ahead);
    const Fetch fetch({next, beside, bytes_of(b.kind, depth), step, asks_near}, depth / chunk);
    ByBlockType<TurnedBlock<kBeside>>(b.kind, [&]<class Type>(std::type_identity<Type>) HWY_ATTR {
      MultiplyBlocks<Type>(from, step, x, depth, block_depth, added ? added + j : nullptr, out + j, fetch);
    });
  }
#endif
}

void UnpackBlocks(const Lines& b, Index depth, Index columns, float* out, Index out_stride,
                  [[maybe_unused]] const Ahead& ahead) {
  const Index step = bytes_of(b.kind, b.stride);
  const std::byte* const from = b.data + bytes_of(b.kind, b.first);
  Index whole = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr Index kLanes = Columns::lanes;
  Fetch fetch(ahead, HWY_MAX(columns / kLanes * (depth / chunk), 1));
  for (; whole + kLanes <= columns; whole += kLanes)
    ByBlockType<TurnedBlock<1>>(b.kind, [&]<class Type>(std::type_identity<Type>) HWY_ATTR {
      TurnBlocks<Type>(from + whole * step, step, depth / Type::numbers, out + whole, out_stride, fetch);
    });
#endif
  for (Index j = whole; j < columns; ++j)
    ByBlockType<OneBlock>(b.kind, [&]<class Type>(std::type_identity<Type>) HWY_ATTR {
      DecodeChunks<Type>(from + j * step, 0, depth / chunk, out + j, out_stride);
    });
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::stored
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::stored {

HWY_EXPORT(DecodeBlocks);
HWY_EXPORT(NumberInBlocks);
HWY_EXPORT(UnpackBlocks);
HWY_EXPORT(BlocksBeside);
HWY_EXPORT(MultiplyBlockColumns);

namespace blocks {

using panels::chunk;

float number(Stored kind, const std::byte* from, Index index) {
  return HWY_DYNAMIC_DISPATCH(NumberInBlocks)(kind, from, index);
}

void decode(Stored kind, const std::byte* from, Index first, Index count, float* to) {
  const Index end = first + count;
  // A run may begin and end inside a chunk.
  const auto part = [&](Index until) {
    float numbers[chunk];
    const Index at = first / chunk;
    HWY_DYNAMIC_DISPATCH(DecodeBlocks)(kind, from, at, at + 1, numbers);
    to = std::copy(numbers + (first - at * chunk), numbers + (until - at * chunk), to);
    first = until;
  };
  if (first < end && first % chunk != 0) part(std::min(end, (first / chunk + 1) * chunk));
  if (const Index whole = (end - first) / chunk; whole > 0) {
    HWY_DYNAMIC_DISPATCH(DecodeBlocks)(kind, from, first / chunk, first / chunk + whole, to);
    first += whole * chunk;
    to += whole * chunk;
  }
  if (first < end) part(end);
}

bool finite(Stored kind, const std::byte* from, Index blocks) {
  const Layout& of = layout(kind);
  float numbers[longest_block];
  for (; blocks > 0; --blocks, from += of.bytes) {
    decode(kind, from, 0, of.numbers, numbers);
    if (!std::all_of(numbers, numbers + of.numbers, [](float number) { return std::isfinite(number); })) return false;
  }
  return true;
}

void unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride, const Ahead& ahead) {
  assert(begins_at(b.kind, depth));
  HWY_DYNAMIC_DISPATCH(UnpackBlocks)(b, depth, columns, out, out_stride, ahead);
}

Index columns_beside() {
  return HWY_DYNAMIC_DISPATCH(BlocksBeside)();
}

void multiply_columns(const Lines& b, const float* x, Index depth, Index columns, Index block_depth, const float* added,
                      float* out, Index ahead) {
  assert(begins_at(b.kind, depth) && begins_at(b.kind, block_depth));
  HWY_DYNAMIC_DISPATCH(MultiplyBlockColumns)(b, x, depth, columns, block_depth, added, out, ahead);
}

}  // namespace blocks
}  // namespace headscope::stored
#endif
