// GGUF's blocks whose numbers stand in a grid (IQ1, IQ2, IQ3), by eights or fours: a block names points of the grid by
// their places. As gguf_blocks-inl.h says; all products here are exact, 11 bits times 5 times 6, whatever their order.
// Compiled once per instruction set.

#if defined(HEADSCOPE_GGUF_GRID_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_GGUF_GRID_BLOCKS_INL_H
#undef HEADSCOPE_GGUF_GRID_BLOCKS_INL_H
#else
#define HEADSCOPE_GGUF_GRID_BLOCKS_INL_H
#endif

#include "core/tensor/gguf_blocks-inl.h"
#include "core/tensor/gguf_grids.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::stored {
namespace HWY_NAMESPACE {

/// Values of a grid, those with a sign behind them.
inline constexpr std::int8_t twos[16] = {8, 25, 43, 0, -8, -25, -43, 0};
inline constexpr std::int8_t threes[16] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
inline constexpr std::int8_t odd_threes[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};
/// Eight times −1, 0 and 1, an eighth more, or less.
inline constexpr std::int8_t ones[16] = {-7, 1, 9, 0, -9, -1, 7, 0};

/// Four times eight numbers of a grid, and their signs.
template <class Block>
class Eights {
 public:
  using Type = BlockType<Block>;
  using Bits = typename Type::Bits;

  template <std::size_t size>
  HWY_INLINE void look_up(Index group, const std::array<std::uint32_t, size>& grid, const Bits& place) {
    points_[group] = Block::in_grid(grid.data(), place);
  }
  /// The same where all eight are less than the grid says, or more: where this is 1, or 0.
  template <std::size_t size>
  HWY_INLINE void look_up(Index group, const std::array<std::uint32_t, size>& grid, const Bits& place,
                          const Bits& less) {
    points_[group] = Block::in_grid(grid.data(), place) | less * Type::set(each(0x44));
  }
  HWY_INLINE Bits numbers(Index w) const { return Type::some(points_[w / 2], static_cast<int>(4 * (w % 2)), each(15)); }

 private:
  Bits points_[4];
};

/// Bits 4 w … 4 w + 3 of all, each times `one`, a power of two, in its byte.
template <class Block>
HWY_INLINE typename Block::Bits Signs(const typename Block::Bits& all, Index w, std::uint32_t one) {
  using Type = BlockType<Block>;
  return Type::some(all, static_cast<int>(4 * w), 15) * Type::set(0x00204081u * one) & Type::set(each(one));
}
/// Of four times seven signs, one in each byte, all eight: an even number of them is set.
template <class Block>
HWY_INLINE typename Block::Bits EvenSigns(const typename Block::Bits& sevens) {
  using Bits = typename Block::Bits;
  const Bits four = sevens ^ Block::right(sevens, 4), two = four ^ Block::right(four, 2),
             odd = (two ^ Block::right(two, 1)) & Block::set(each(1));
  return BlockType<Block>::with(sevens, odd, 7);
}
/// Of four times seven bits one behind the other, each in its byte.
template <class Block>
HWY_INLINE typename Block::Bits Sevens(const typename Block::Bits& bits) {
  const auto part = [&](int i) HWY_ATTR { return Block::left(bits, i) & Block::set(0x7fu << 8 * i); };
  return part(0) | part(1) | part(2) | part(3);
}
/// 2 n + 1.
template <class Block>
HWY_INLINE typename Block::Floats Odd(const typename Block::Bits& n) {
  return Block::whole(Block::left(n, 1) | Block::set(1));
}
/// Eight numbers' places that each have a byte in `low` and some bits in `high`.
template <class Block>
HWY_INLINE typename Block::Bits Place(const typename Block::Bits& low, Index group, const typename Block::Bits& high,
                                      Index at, std::uint32_t mask) {
  using Type = BlockType<Block>;
  return Type::with(Type::some(low, static_cast<int>(8 * group), 255), Type::some(high, static_cast<int>(at), mask), 8);
}

// About two bits: a point for eight numbers. The scale of 32 (IQ2_XXS) or 16 is d times (2 n + 1) ÷ 8.

template <class Block>
class Iq2Xxs {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::iq2_xxs)
  static constexpr Index begin = 2, pieces = 4;
  HWY_INLINE explicit Iq2Xxs(const Block& block)
      : block_(block), d_(Type::half(block.template head<0>()) * Type::constant(0.125f)) {}
  HWY_INLINE void chunk(Index c) {
    const Bits places = block_.template word<2>(2 * c), rest = block_.template word<2>(2 * c + 1);
    for (int g = 0; g < 4; ++g) points_.look_up(g, iq2_xxs_grid, Type::some(places, 8 * g, 255));
    signs_ = EvenSigns<Block>(Sevens<Block>(rest));
    scale_ = d_ * Odd<Block>(Block::right(rest, 28));
  }
  HWY_INLINE Bits bytes(Index w) const {
    return Block::in_table(twos, points_.numbers(w) | Signs<Block>(signs_, w, 4));
  }
  HWY_INLINE Floats number(const Floats& q, Index) const { return scale_ * q; }

 private:
  const Block& block_;
  Eights<Block> points_;
  Bits signs_;
  Floats d_, scale_;
};

template <class Block>
class Iq2Xs {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::iq2_xs)
  static constexpr Index begin = 2, pieces = 4;
  HWY_INLINE explicit Iq2Xs(const Block& block)
      : block_(block),
        d_(Type::half(block.template head<0>()) * Type::constant(0.125f)),
        scales_{block.template head<66>(), block.template head<70>()} {}
  /// Places of nine bits with seven signs above them.
  HWY_INLINE void chunk(Index c) {
    const Bits first = block_.template word<2>(2 * c), second = block_.template word<2>(2 * c + 1);
    for (int g = 0; g < 4; ++g) points_.look_up(g, iq2_xs_grid, Type::some(g < 2 ? first : second, 16 * (g % 2), 511));
    signs_ = EvenSigns<Block>(Type::some(first, 9, 0x7f) | Type::some(first, 17, 0x7f00) |
                              (Block::left(second, 7) & Type::set(0x7f0000)) | Type::some(second, 1, 0x7f000000));
    for (int half = 0; half < 2; ++half)
      scale_[half] = d_ * Odd<Block>(Type::some(scales_[c / 4], static_cast<int>(8 * (c % 4)) + 4 * half, 15));
  }
  HWY_INLINE Bits bytes(Index w) const {
    return Block::in_table(twos, points_.numbers(w) | Signs<Block>(signs_, w, 4));
  }
  HWY_INLINE Floats number(const Floats& q, Index half) const { return scale_[half] * q; }

 private:
  const Block& block_;
  Eights<Block> points_;
  Bits signs_;
  Floats d_;
  Bits scales_[2];
  Floats scale_[2];
};

template <class Block>
class Iq2S {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::iq2_s)
  static constexpr Index begin = 2, pieces = 5;
  HWY_INLINE explicit Iq2S(const Block& block)
      : block_(block), d_(Type::half(block.template head<0>()) * Type::constant(0.125f)) {}
  HWY_INLINE void chunk(Index c) {
    const int at = static_cast<int>(8 * (c % 4));
    const Bits low = block_.template word<2>(c), high = Block::right(block_.template word<66>(c / 4), at),
               scales = Block::right(block_.template word<74>(c / 4), at);
    for (int g = 0; g < 4; ++g) points_.look_up(g, iq2_s_grid, Place<Block>(low, g, high, 2 * g, 3));
    signs_ = block_.template word<34>(c);
    for (int half = 0; half < 2; ++half) scale_[half] = d_ * Odd<Block>(Type::some(scales, 4 * half, 15));
  }
  HWY_INLINE Bits bytes(Index w) const {
    return Block::in_table(twos, points_.numbers(w) | Signs<Block>(signs_, w, 4));
  }
  HWY_INLINE Floats number(const Floats& q, Index half) const { return scale_[half] * q; }

 private:
  const Block& block_;
  Eights<Block> points_;
  Bits signs_;
  Floats d_, scale_[2];
};

// About three bits: a point for four numbers. The scale of 32 is d times (2 n + 1), ÷ 4 in IQ3_XXS.

template <class Block>
class Iq3Xxs {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::iq3_xxs)
  static constexpr Index begin = 2, pieces = 6;
  HWY_INLINE explicit Iq3Xxs(const Block& block)
      : block_(block), d_(Type::half(block.template head<0>()) * Type::constant(0.25f)) {}
  HWY_INLINE void chunk(Index c) {
    at_ = c;
    const Bits rest = block_.template word<66>(c);
    signs_ = EvenSigns<Block>(Sevens<Block>(rest));
    scale_ = d_ * Odd<Block>(Block::right(rest, 28));
  }
  HWY_INLINE Bits bytes(Index w) const {
    const Bits place = Type::some(block_.template word<2>(2 * at_ + w / 4), static_cast<int>(8 * (w % 4)), 255);
    return Block::in_table(threes, Block::in_grid(iq3_xxs_grid.data(), place) | Signs<Block>(signs_, w, 8));
  }
  HWY_INLINE Floats number(const Floats& q, Index) const { return scale_ * q; }

 private:
  const Block& block_;
  Index at_ = 0;
  Bits signs_;
  Floats d_, scale_;
};

template <class Block>
class Iq3S {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::iq3_s)
  static constexpr Index begin = 2, pieces = 6;
  HWY_INLINE explicit Iq3S(const Block& block) : block_(block), d_(Type::half(block.template head<0>())) {
    block.template heads<94>(tail_);
  }
  HWY_INLINE void chunk(Index c) {
    at_ = c;
    high_ = Block::right(block_.template word<66>(c / 4), static_cast<int>(8 * (c % 4)));
    signs_ = c < 6 ? block_.template word<74>(c) : tail_[c - 5];
    scale_ = d_ * Odd<Block>(Type::some(tail_[3], static_cast<int>(4 * c), 15));
  }
  HWY_INLINE Bits bytes(Index w) const {
    const Bits place = Place<Block>(block_.template word<2>(2 * at_ + w / 4), w % 4, high_, w, 1);
    return Block::in_table(odd_threes, Block::in_grid(iq3_s_grid.data(), place) | Signs<Block>(signs_, w, 8));
  }
  HWY_INLINE Floats number(const Floats& q, Index) const { return scale_ * q; }

 private:
  const Block& block_;
  Index at_ = 0;
  Bits tail_[4];  // the last three words: signs, signs and scales
  Bits high_, signs_;
  Floats d_, scale_;
};

// Less than two bits: a point for eight numbers, −1, 0 or 1 and an eighth more or less. The scale of 32 (IQ1_S) or 16
// is d times (2 n + 1).

template <class Block>
class Iq1S {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::iq1_s)
  static constexpr Index begin = 2, pieces = 3;
  HWY_INLINE explicit Iq1S(const Block& block)
      : block_(block), d_(Type::half(block.template head<0>()) * Type::constant(0.125f)) {}
  HWY_INLINE void chunk(Index c) {
    const Bits low = block_.template word<2>(c),
               high = Block::right(block_.template word<34>(c / 2), static_cast<int>(16 * (c % 2))),
               less = Type::some(high, 15, 1);
    for (int g = 0; g < 4; ++g) points_.look_up(g, iq1_grid, Place<Block>(low, g, high, 3 * g, 7), less);
    scale_ = d_ * Odd<Block>(Type::some(high, 12, 7));
  }
  HWY_INLINE Bits bytes(Index w) const { return Block::in_table(ones, points_.numbers(w)); }
  HWY_INLINE Floats number(const Floats& q, Index) const { return scale_ * q; }

 private:
  const Block& block_;
  Eights<Block> points_;
  Floats d_, scale_;
};

template <class Block>
class Iq1M {
 public:
  HEADSCOPE_BLOCK_TYPE(Stored::iq1_m)
  static constexpr Index begin = 0, pieces = 3;
  /// The bits of d are above the scales, four in each 16.
  HWY_INLINE explicit Iq1M(const Block& block)
      : block_(block), scales_{block.template head<48>(), block.template head<52>()} {
    const Bits bits = Type::some(scales_[0], 12, 0xf) | Type::some(scales_[0], 24, 0xf0) |
                      Type::some(scales_[1], 4, 0xf00) | Type::some(scales_[1], 16, 0xf000);
    d_ = Type::half(bits) * Type::constant(0.125f);
  }
  HWY_INLINE void chunk(Index c) {
    const int i = static_cast<int>(c);
    const Bits low = block_.template word<0>(c), high = Block::right(block_.template word<32>(c / 2), 16 * (i % 2));
    for (int g = 0; g < 4; ++g)
      points_.look_up(g, iq1_grid, Place<Block>(low, g, high, 4 * g, 7), Type::some(high, 4 * g + 3, 1));
    for (int half = 0; half < 2; ++half)
      scale_[half] = d_ * Odd<Block>(Type::some(scales_[c / 4], 16 * (i / 2 % 2) + 6 * (i % 2) + 3 * half, 7));
  }
  HWY_INLINE Bits bytes(Index w) const { return Block::in_table(ones, points_.numbers(w)); }
  HWY_INLINE Floats number(const Floats& q, Index half) const { return scale_[half] * q; }

 private:
  const Block& block_;
  Eights<Block> points_;
  Bits scales_[2];
  Floats d_, scale_[2];
};

}  // namespace HWY_NAMESPACE
}  // namespace headscope::stored
HWY_AFTER_NAMESPACE();

#endif
