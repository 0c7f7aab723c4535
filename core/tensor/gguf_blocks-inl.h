// The blocks of GGUF (ggml's ggml-common.h and ggml-quants.c are their definition): what each decodes to, computed in
// float32 in the order of operations of the reference, so that the result is the same to the bit. (Products that
// something is added to are exact, 11 bits of a scale times 6 times 5: it is one whether a compiler rounds them first.)
// Compiled once per instruction set.
//
// Every type is written once, for one block or for blocks of as many columns as registers hold: `Block` is where they
// lie, Block::Bits 32 bits of each, Block::Floats a number of each.
//   block.word<at>(w)   the 32 bits at byte at + 4 w of what begins at byte Type::begin, `pieces` times 16 bytes
//   block.head<at>()    the 32 bits at any byte, read for this once; heads<at>(out): four one behind the other
// A type decodes 32 numbers at a time: chunk(c) is called before those from 32 c on are asked for; bytes(w) are numbers
// 4 w … 4 w + 3 of them, a whole number in each signed byte; number(q, half) is the float32 that such a number stands
// for, in the first or second half of the 32.
// Those whose numbers stand in a grid are in gguf_grid_blocks-inl.h.

#if defined(HEADSCOPE_GGUF_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_GGUF_BLOCKS_INL_H
#undef HEADSCOPE_GGUF_BLOCKS_INL_H
#else
#define HEADSCOPE_GGUF_BLOCKS_INL_H
#endif

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/tensor/stored.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::stored {
namespace HWY_NAMESPACE {

/// The same byte four times.
constexpr std::uint32_t each(std::uint32_t byte) {
  return byte * 0x01010101u;
}

/// What all types ask of a block's registers.
template <class Block>
struct BlockType {
  using Bits = typename Block::Bits;
  using Floats = typename Block::Floats;

  static HWY_INLINE Bits set(std::uint32_t bits) { return Block::set(bits); }
  /// The bits of `mask` of what is `places` further up.
  static HWY_INLINE Bits some(const Bits& bits, int places, std::uint32_t mask) {
    return Block::right(bits, places) & set(mask);
  }
  static HWY_INLINE Bits with(const Bits& low, const Bits& high, int places) { return low | Block::left(high, places); }
  /// Each byte, below 128, less this one.
  static HWY_INLINE Bits less(const Bits& bytes, std::uint32_t by) {
    return (bytes + set(each(128 - by))) ^ set(each(128));
  }
  static HWY_INLINE Floats whole(const Bits& number) { return Block::whole(number); }
  static HWY_INLINE Floats constant(float number) { return Block::as_float(set(std::bit_cast<std::uint32_t>(number))); }
  static HWY_INLINE Floats half(const Bits& low) { return Block::half(low); }
};

#define HEADSCOPE_BLOCK_TYPE(kind)      \
  using Type = BlockType<Block>;        \
  using Bits = typename Type::Bits;     \
  using Floats = typename Type::Floats; \
  static constexpr Index numbers = layout(kind).numbers, size = layout(kind).bytes;

// 32 numbers share a scale d (and, in the _1 types, a smallest value m).

/// Numbers of 4 bits: the first 16 in the lower halves of 16 bytes.
template <class Block, int at>
HWY_INLINE typename Block::Bits Fours(const Block& block, Index w, Index piece = 0) {
  return BlockType<Block>::some(block.template word<at>(4 * piece + w % 4), w < 4 ? 0 : 4, each(15));
}
/// The fifth bits of numbers 4 w … 4 w + 3, bit after bit in `all`, where bytes have them.
template <class Block>
HWY_INLINE typename Block::Bits Fifths(const typename Block::Bits& all, Index w) {
  using Type = BlockType<Block>;
  return Type::some(all, static_cast<int>(4 * w), 15) * Type::set(0x02040810u) & Type::set(each(16));
}

template <class Block>
class Q4_0 {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q4_0)
  static constexpr Index begin = 2, pieces = 1;
  HWY_INLINE explicit Q4_0(const Block& block) : block_(block), d_(Type::half(block.template head<0>())) {}
  HWY_INLINE void chunk(Index) {}
  HWY_INLINE Bits bytes(Index w) const { return Type::less(Fours<Block, 2>(block_, w), 8); }
  HWY_INLINE Floats number(const Floats& q, Index) const { return d_ * q; }

 private:
  const Block& block_;
  Floats d_;
};

template <class Block>
class Q4_1 {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q4_1)
  static constexpr Index begin = 4, pieces = 1;
  HWY_INLINE explicit Q4_1(const Block& block) : block_(block) {
    const Bits head = block.template head<0>();
    d_ = Type::half(head), m_ = Type::half(Block::right(head, 16));
  }
  HWY_INLINE void chunk(Index) {}
  HWY_INLINE Bits bytes(Index w) const { return Fours<Block, 4>(block_, w); }
  HWY_INLINE Floats number(const Floats& q, Index) const { return d_ * q + m_; }

 private:
  const Block& block_;
  Floats d_, m_;
};

template <class Block>
class Q5_0 {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q5_0)
  static constexpr Index begin = 6, pieces = 1;
  HWY_INLINE explicit Q5_0(const Block& block)
      : block_(block), d_(Type::half(block.template head<0>())), fifths_(block.template head<2>()) {}
  HWY_INLINE void chunk(Index) {}
  HWY_INLINE Bits bytes(Index w) const {
    return Type::less(Fours<Block, 6>(block_, w) | Fifths<Block>(fifths_, w), 16);
  }
  HWY_INLINE Floats number(const Floats& q, Index) const { return d_ * q; }

 private:
  const Block& block_;
  Floats d_;
  Bits fifths_;
};

template <class Block>
class Q5_1 {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q5_1)
  static constexpr Index begin = 8, pieces = 1;
  HWY_INLINE explicit Q5_1(const Block& block) : block_(block), fifths_(block.template head<4>()) {
    const Bits head = block.template head<0>();
    d_ = Type::half(head), m_ = Type::half(Block::right(head, 16));
  }
  HWY_INLINE void chunk(Index) {}
  HWY_INLINE Bits bytes(Index w) const { return Fours<Block, 8>(block_, w) | Fifths<Block>(fifths_, w); }
  HWY_INLINE Floats number(const Floats& q, Index) const { return d_ * q + m_; }

 private:
  const Block& block_;
  Floats d_, m_;
  Bits fifths_;
};

template <class Block>
class Q8_0 {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q8_0)
  static constexpr Index begin = 2, pieces = 2;
  HWY_INLINE explicit Q8_0(const Block& block) : block_(block), d_(Type::half(block.template head<0>())) {}
  HWY_INLINE void chunk(Index) {}
  HWY_INLINE Bits bytes(Index w) const { return block_.template word<2>(w); }
  HWY_INLINE Floats number(const Floats& q, Index) const { return d_ * q; }

 private:
  const Block& block_;
  Floats d_;
};

// 32 numbers (IQ4_XS: 256), each a place in a table of 16 values.

inline constexpr std::int8_t uneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// Twice the values of E2M1 (OCP Microscaling Formats 1.0).
inline constexpr std::int8_t tiny_floats[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

template <class Block>
class Iq4Nl {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::iq4_nl)
  static constexpr Index begin = 2, pieces = 1;
  HWY_INLINE explicit Iq4Nl(const Block& block) : block_(block), d_(Type::half(block.template head<0>())) {}
  HWY_INLINE void chunk(Index) {}
  HWY_INLINE Bits bytes(Index w) const { return Block::in_table(uneven, Fours<Block, 2>(block_, w)); }
  HWY_INLINE Floats number(const Floats& q, Index) const { return d_ * q; }

 private:
  const Block& block_;
  Floats d_;
};

template <class Block>
class Iq4Xs {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::iq4_xs)
  static constexpr Index begin = 8, pieces = 8;
  HWY_INLINE explicit Iq4Xs(const Block& block)
      : block_(block), upper_(block.template head<0>()), lower_(block.template head<4>()), d_(Type::half(upper_)) {}
  HWY_INLINE void chunk(Index c) {
    at_ = c;
    const int i = static_cast<int>(c);
    const Bits scale = Type::with(Type::some(lower_, 4 * i, 15), Type::some(upper_, 16 + 2 * i, 3), 4);
    scale_ = d_ * Type::whole(scale - Type::set(32));
  }
  HWY_INLINE Bits bytes(Index w) const { return Block::in_table(uneven, Fours<Block, 8>(block_, w, at_)); }
  HWY_INLINE Floats number(const Floats& q, Index) const { return scale_ * q; }

 private:
  const Block& block_;
  Index at_ = 0;
  Bits upper_, lower_;
  Floats d_, scale_;
};

template <class Block>
class Mxfp4 {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::mxfp4)
  static constexpr Index begin = 1, pieces = 1;
  /// The scale is half of the power of two that E8M0 names; the two smallest have no exponent of their own.
  HWY_INLINE explicit Mxfp4(const Block& block) : block_(block) {
    const Bits exponent = Type::some(block.template head<0>(), 0, 255);
    const Bits subnormal = (exponent + Type::set(1)) * Type::set(0x00200000u);
    scale_ = Block::as_float(Block::if_below(exponent, 2, subnormal, Block::left(exponent - Type::set(1), 23)));
  }
  HWY_INLINE void chunk(Index) {}
  HWY_INLINE Bits bytes(Index w) const { return Block::in_table(tiny_floats, Fours<Block, 1>(block_, w)); }
  HWY_INLINE Floats number(const Floats& q, Index) const { return scale_ * q; }

 private:
  const Block& block_;
  Floats scale_;
};

/// 64 numbers, 16 of which share a scale: of 8 bytes the first eight are the lower halves.
template <class Block>
class Nvfp4 {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::nvfp4)
  static constexpr Index begin = 4, pieces = 2;
  HWY_INLINE explicit Nvfp4(const Block& block) : block_(block), scales_(block.template head<0>()) {}
  HWY_INLINE void chunk(Index c) {
    at_ = c;
    for (int half = 0; half < 2; ++half)
      scale_[half] = scale(Type::some(scales_, static_cast<int>(16 * c) + 8 * half, 255));
  }
  HWY_INLINE Bits bytes(Index w) const {
    return Block::in_table(
        tiny_floats, Type::some(block_.template word<4>(4 * at_ + w / 4 * 2 + w % 2), w % 4 < 2 ? 0 : 4, each(15)));
  }
  HWY_INLINE Floats number(const Floats& q, Index half) const { return scale_[half] * q; }

 private:
  /// Half of what E4M3 without a sign says, whose upper bit means nothing: 2⁻⁷ and three bits of 2⁻¹⁰ less 2⁻⁷ where
  /// the exponent is 0. 0x7F, which is no number there, is 0.
  static HWY_INLINE Floats scale(const Bits& byte) {
    const Bits number = Block::if_below(byte ^ Type::set(0x7f), 1, Type::set(0), byte & Type::set(0x7f)),
               up = Block::left(number, 20);
    const Bits least = Type::set(std::bit_cast<std::uint32_t>(0x1p-7f));
    return Block::as_float(
               Block::if_below(number, 8, up + least, up + Type::set(std::bit_cast<std::uint32_t>(0x1p-8f)))) -
           Block::as_float(Block::if_below(number, 8, least, Type::set(0)));
  }

  const Block& block_;
  Index at_ = 0;
  Bits scales_;
  Floats scale_[2];
};

// 256 numbers, whose 8 (Q2_K, Q3_K, Q6_K: 16) groups have scales of their own under one of all.

/// Numbers of 2 bits: 32 bytes hold 128 of them, each those of four numbers 32 apart.
template <class Block, int at>
HWY_INLINE typename Block::Bits Twos(const Block& block, Index c, Index w) {
  return BlockType<Block>::some(block.template word<at>(8 * (c / 4) + w), static_cast<int>(2 * (c % 4)), each(3));
}

template <class Block>
class Q2K {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q2_k)
  static constexpr Index begin = 0, pieces = 5;
  HWY_INLINE explicit Q2K(const Block& block) : block_(block) {
    const Bits head = block.template head<80>();
    d_ = Type::half(head), dmin_ = Type::half(Block::right(head, 16));
  }
  HWY_INLINE void chunk(Index c) {
    at_ = c;
    const Bits both = Block::right(block_.template word<0>(c / 2), static_cast<int>(16 * (c % 2)));
    for (int half = 0; half < 2; ++half) {
      scale_[half] = d_ * Type::whole(Type::some(both, 8 * half, 15));
      least_[half] = dmin_ * Type::whole(Type::some(both, 8 * half + 4, 15));
    }
  }
  HWY_INLINE Bits bytes(Index w) const { return Twos<Block, 16>(block_, at_, w); }
  HWY_INLINE Floats number(const Floats& q, Index half) const { return scale_[half] * q - least_[half]; }

 private:
  const Block& block_;
  Index at_ = 0;
  Floats d_, dmin_, scale_[2], least_[2];
};

template <class Block>
class Q3K {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q3_k)
  static constexpr Index begin = 0, pieces = 6;
  HWY_INLINE explicit Q3K(const Block& block)
      : block_(block),
        lower_{block.template head<96>(), block.template head<100>()},
        upper_(block.template head<104>()),
        d_(Type::half(Block::right(block.template head<106>(), 16))) {}
  HWY_INLINE void chunk(Index c) {
    at_ = c;
    // Lower halves of the scales of 16 groups in 8 bytes, the first 8 groups' first; 2 bits more of each in 4 bytes.
    const int i = static_cast<int>(c);
    for (int half = 0; half < 2; ++half) {
      const Bits low = Type::some(lower_[c % 4 / 2], 16 * (i % 2) + 8 * half + 4 * (i / 4), 15),
                 high = Type::some(upper_, 16 * (i % 2) + 8 * half + 2 * (i / 2), 3);
      scale_[half] = d_ * Type::whole(Type::with(low, high, 4) - Type::set(32));
    }
  }
  HWY_INLINE Bits bytes(Index w) const {
    const Bits third = Type::some(block_.template word<0>(w), static_cast<int>(at_), each(1));
    return Type::less(Type::with(Twos<Block, 32>(block_, at_, w), third, 2), 4);
  }
  HWY_INLINE Floats number(const Floats& q, Index half) const { return scale_[half] * q; }

 private:
  const Block& block_;
  Index at_ = 0;
  Bits lower_[2], upper_;
  Floats d_, scale_[2];
};

/// What Q4_K and Q5_K share: d and dmin, and a scale and a smallest value of 6 bits for each of 8 groups in 12 bytes: 4
/// of scales, 4 of smallest values, whose upper two bits belong to the last four groups, and 4 with the lower halves of
/// those.
template <class Block>
class Groups {
 public:
  using Type = BlockType<Block>;
  using Bits = typename Type::Bits;
  using Floats = typename Type::Floats;
  HWY_INLINE explicit Groups(const Block& block) {
    Bits head[4];
    block.template heads<0>(head);
    d_ = Type::half(head[0]), dmin_ = Type::half(Block::right(head[0], 16));
    scales_[0] = Type::some(head[1], 0, each(63)), least_[0] = Type::some(head[2], 0, each(63));
    scales_[1] = Type::some(head[3], 0, each(15)) | Type::some(head[1], 2, each(48));
    least_[1] = Type::some(head[3], 4, each(15)) | Type::some(head[2], 2, each(48));
  }
  HWY_INLINE void at(Index c) {
    const int place = static_cast<int>(8 * (c % 4));
    scale_ = d_ * Type::whole(Type::some(scales_[c / 4], place, 255));
    smallest_ = dmin_ * Type::whole(Type::some(least_[c / 4], place, 255));
  }
  HWY_INLINE Floats number(const Floats& q) const { return scale_ * q - smallest_; }

 private:
  Bits scales_[2], least_[2];
  Floats d_, dmin_, scale_, smallest_;
};

template <class Block>
class Q4K {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q4_k)
  static constexpr Index begin = 16, pieces = 8;
  HWY_INLINE explicit Q4K(const Block& block) : block_(block), groups_(block) {}
  HWY_INLINE void chunk(Index c) { groups_.at(at_ = c); }
  /// Two groups share 32 bytes: lower halves, upper halves.
  HWY_INLINE Bits bytes(Index w) const {
    return Type::some(block_.template word<16>(8 * (at_ / 2) + w), static_cast<int>(4 * (at_ % 2)), each(15));
  }
  HWY_INLINE Floats number(const Floats& q, Index) const { return groups_.number(q); }

 private:
  const Block& block_;
  Index at_ = 0;
  Groups<Block> groups_;
};

template <class Block>
class Q5K {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q5_k)
  static constexpr Index begin = 16, pieces = 10;
  HWY_INLINE explicit Q5K(const Block& block) : block_(block), groups_(block) {}
  HWY_INLINE void chunk(Index c) { groups_.at(at_ = c); }
  HWY_INLINE Bits bytes(Index w) const {
    const int c = static_cast<int>(at_);
    return Type::with(Type::some(block_.template word<48>(8 * (at_ / 2) + w), 4 * (c % 2), each(15)),
                      Type::some(block_.template word<16>(w), c, each(1)), 4);
  }
  HWY_INLINE Floats number(const Floats& q, Index) const { return groups_.number(q); }

 private:
  const Block& block_;
  Index at_ = 0;
  Groups<Block> groups_;
};

template <class Block>
class Q6K {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::q6_k)
  static constexpr Index begin = 0, pieces = 13;
  HWY_INLINE explicit Q6K(const Block& block)
      : block_(block), d_(Type::half(Block::right(block.template head<206>(), 16))) {}
  HWY_INLINE void chunk(Index c) {
    at_ = c;
    const Bits both = Block::right(block_.template word<192>(c / 2), static_cast<int>(16 * (c % 2)));
    scale_[0] = d_ * Block::template of_byte<0>(both);
    scale_[1] = d_ * Block::template of_byte<1>(both);
  }
  /// Per half of the block: 64 bytes with the lower four bits of 128 numbers, 32 bytes with their upper two.
  HWY_INLINE Bits bytes(Index w) const {
    const Index side = at_ / 4;
    const int quarter = static_cast<int>(at_ % 4);
    const Bits lower = block_.template word<0>(16 * side + 8 * (quarter % 2) + w),
               upper = block_.template word<128>(8 * side + w);
    return Type::less(
        Type::with(Type::some(lower, 4 * (quarter / 2), each(15)), Type::some(upper, 2 * quarter, each(3)), 4), 32);
  }
  HWY_INLINE Floats number(const Floats& q, Index half) const { return scale_[half] * q; }

 private:
  const Block& block_;
  Index at_ = 0;
  Floats d_, scale_[2];
};

// 256 numbers −d, 0 or d (BitNet and other ternary models): five in a byte, or four.

template <class Block>
class Tq1_0 {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::tq1_0)
  static constexpr Index begin = 0, pieces = 3;
  HWY_INLINE explicit Tq1_0(const Block& block)
      : block_(block), last_(block.template head<48>()), d_(Type::half(Block::right(block.template head<50>(), 16))) {}
  HWY_INLINE void chunk(Index c) { at_ = c; }
  /// Five digits to the base of 3 in a byte, as a fraction of 256: times 3ⁿ modulo 256, the next one is on top. So 32
  /// bytes hold 160 numbers, 16 more 80, and the last 4, of four digits each, 16.
  HWY_INLINE Bits bytes(Index w) const {
    const Index sixteenth = 2 * at_ + w / 4;
    if (at_ < 5) return digits(block_.template word<0>(w), at_);
    if (sixteenth < 15) return digits(block_.template word<32>(w % 4), sixteenth - 10);
    return digits(last_, w % 4);
  }
  HWY_INLINE Floats number(const Floats& q, Index) const { return d_ * q; }

 private:
  static HWY_INLINE Bits digits(const Bits& bytes, Index n) {
    constexpr std::uint32_t powers[] = {1, 3, 9, 27, 81}, every_second = 0x00ff00ff;
    const Bits power = Type::set(powers[n]), three = Type::set(3);
    const auto on_top = [&](int places) HWY_ATTR {
      const Bits rest = Type::some(bytes, places, every_second) * power & Type::set(every_second);
      return Type::some(rest * three, 8, every_second);
    };
    return Type::less(Type::with(on_top(0), on_top(8), 8), 1);
  }

  const Block& block_;
  Index at_ = 0;
  Bits last_;
  Floats d_;
};

template <class Block>
class Tq2_0 {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::tq2_0)
  static constexpr Index begin = 0, pieces = 4;
  HWY_INLINE explicit Tq2_0(const Block& block)
      : block_(block), d_(Type::half(Block::right(block.template head<62>(), 16))) {}
  HWY_INLINE void chunk(Index c) { at_ = c; }
  HWY_INLINE Bits bytes(Index w) const { return Type::less(Twos<Block, 0>(block_, at_, w), 1); }
  HWY_INLINE Floats number(const Floats& q, Index) const { return d_ * q; }

 private:
  const Block& block_;
  Index at_ = 0;
  Floats d_;
};

}  // namespace HWY_NAMESPACE
}  // namespace headscope::stored
HWY_AFTER_NAMESPACE();

#endif
