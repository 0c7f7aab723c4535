#pragma once
// Asking for what is multiplied next while the processor still multiplies. Private to core/tensor.

#include <algorithm>
#include <cstddef>

#include "core/tensor/stored.h"

namespace headscope {

/// What the caller reads next, from memory rather than from a cache: asked for while this product is computed, so
/// that it is in the second-level cache when its turn comes. Runs of `length` bytes that begin `stride` bytes apart.
struct Ahead {
  static constexpr Index line = 64;  ///< bytes that come from memory at once

  const std::byte* data = nullptr;
  Index runs = 0, length = 0, stride = 0;

  static Ahead of(const float* data, Index count) {
    return {reinterpret_cast<const std::byte*>(data), count * static_cast<Index>(sizeof(float)) / line, line, line};
  }
  /// Runs [runs · from ÷ of, runs · to ÷ of).
  Ahead part(Index from, Index to, Index of) const {
    const Index begin = runs * from / of;
    return {data + begin * stride, runs * to / of - begin, length, stride};
  }
};

/// Asks for it by so many cache lines at each of a product's steps, until all are: in kStreams places at once, since a
/// processor's own prefetcher, which goes on from where it is asked, follows each one only so far ahead (with one place
/// 8 rows get two thirds of what memory gives up, with four nine tenths).
class Fetch {
 public:
  /// `steps`: in how many the whole product falls.
  Fetch(const Ahead& ahead, Index steps)
      : next_(ahead.data),
        length_(ahead.length),
        stride_(ahead.stride),
        streams(std::clamp<Index>(ahead.runs, 1, 4)),
        runs_((ahead.runs + streams - 1) / streams) {
    apart_ = runs_ * stride_;
    const Index lines = runs_ * ((length_ + Ahead::line - 1) / Ahead::line);
    each_ = lines > 0 ? (lines + steps - 1) / std::max<Index>(steps, 1) : 0;
  }
  [[gnu::always_inline]] void some() {
    for (Index i = 0; i < each_; ++i) {
      for (Index stream = 0; stream < streams; ++stream)
        __builtin_prefetch(next_ + at_ + stream * apart_, 0, 2);  // the second level
      at_ += Ahead::line;
      if (at_ < length_) continue;
      at_ = 0;
      next_ += stride_;
      if (--runs_ == 0) each_ = 0;
    }
  }

 private:
  const std::byte* next_;
  Index length_, stride_, streams, runs_, at_ = 0, apart_ = 0, each_ = 0;
};

}  // namespace headscope
