#pragma once
// Asking for what is multiplied next while the processor still multiplies. For products alone.

#include <algorithm>
#include <cstddef>

#include "core/tensor/stored.h"

namespace headscope {

/// Whether floats that lie one behind the other are asked for into the first-level cache: AMD's Zen gives them up
/// sooner so (16 rows of GPT-2's shape take 0.9 of the time), Intel's Xeons do not. So does it numbers that are decoded
/// for one row; for many rows they are better off in the second on both.
inline const bool asks_near = [] {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}();

/// What the caller reads next, from memory rather than from a cache: asked for while this product is computed, so
/// that it is in a core's cache when its turn comes. Runs of `length` bytes that begin `stride` bytes apart.
struct Ahead {
  static constexpr Index line = 64;  ///< bytes that come from memory at once

  const std::byte* data = nullptr;
  Index runs = 0, length = 0, stride = 0;
  bool near = false;  ///< into the first-level cache, else the second

  /// Numbers one behind the other, in as many runs as Fetch asks for side by side.
  static Ahead of(const float* numbers, Index count) {
    const Index quarter = count * static_cast<Index>(sizeof(float)) / 4;
    return {reinterpret_cast<const std::byte*>(numbers), 4, quarter, quarter, asks_near};
  }
  /// Its share [from ÷ of, to ÷ of): whole runs where there are enough of them for all, else of each run a part.
  Ahead share(Index from, Index to, Index of) const {
    return runs >= 4 * of ? part(from, to, of) : of_each(from, to, of);
  }
  /// Runs [runs · from ÷ of, runs · to ÷ of).
  Ahead part(Index from, Index to, Index of) const {
    const Index begin = runs * from / of;
    return {data + begin * stride, runs * to / of - begin, length, stride, near};
  }
  /// Of each run the bytes [length · from ÷ of, length · to ÷ of).
  Ahead of_each(Index from, Index to, Index of) const {
    const Index begin = length * from / of;
    return {data + begin, runs, length * to / of - begin, stride, near};
  }
};

/// Asks for it by so many cache lines at each of a product's steps, until all are: in four places at once, since a
/// processor's own prefetcher, which goes on from where it is asked, follows each one only so far ahead (with one place
/// 8 rows get two thirds of what memory gives up, with four nine tenths).
class Fetch {
 public:
  /// `steps`: in how many the whole product falls.
  Fetch(const Ahead& ahead, Index steps)
      : next_(ahead.data),
        lines_((ahead.length + Ahead::line - 1) / Ahead::line),
        runs_((ahead.runs + streams - 1) / streams),
        near_(ahead.near) {
    left_ = std::max<Index>(lines_, 1);  // with nothing to ask for it stays so
    apart_ = runs_ * ahead.stride;
    skipped_ = ahead.stride - lines_ * Ahead::line;
    const Index calls = runs_ > 0 ? std::max<Index>(steps / runs_, 1) : 1;  // for a run
    each_ = runs_ > 0 ? (lines_ + calls - 1) / calls : 0;
  }
  [[gnu::always_inline]] void some() {
    if (near_)
      ask<3>();
    else
      ask<2>();
    left_ -= each_;
    if (left_ > 0) return;
    next_ += skipped_ + left_ * Ahead::line;  // what was asked for behind the run's end is asked for in vain
    left_ = lines_;
    if (--runs_ <= 0) each_ = 0;
  }

 private:
  template <int locality>
  [[gnu::always_inline]] void ask() {
    for (Index i = 0; i < each_; ++i, next_ += Ahead::line)
#pragma GCC unroll 4
      for (Index stream = 0; stream < streams; ++stream) __builtin_prefetch(next_ + stream * apart_, 0, locality);
  }

  static constexpr Index streams = 4;
  const std::byte* next_;
  Index lines_, runs_;
  bool near_;
  Index left_ = 0, apart_ = 0, skipped_ = 0, each_ = 0;
};

}  // namespace headscope
