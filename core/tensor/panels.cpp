#include "core/tensor/panels.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <vector>

#include "core/base/nth.h"

// This file is compiled once per instruction set by foreach_target.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/tensor/panels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::panels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

Index Width() {
  return 2 * static_cast<Index>(hn::Lanes(D()));
}

// Rows held in registers at once: 8 × 2 accumulators where there are 32 registers, 6 × 2 where there are 16.
constexpr int kRows = (HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86) || HWY_ARCH_ARM_A64 ? 8 : 6;

/// One row of one panel: c = sum · scale + bias, only the first `columns` of it.
HWY_INLINE void Store(V low, V high, V scale, const float* bias, Index columns, float* c) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  if (columns == 2 * lanes) {
    hn::StoreU(hn::MulAdd(low, scale, bias ? hn::LoadU(d, bias) : hn::Zero(d)), d, c);
    hn::StoreU(hn::MulAdd(high, scale, bias ? hn::LoadU(d, bias + lanes) : hn::Zero(d)), d, c + lanes);
    return;
  }
  HWY_ALIGN float shift[2 * HWY_MAX_BYTES / sizeof(float)] = {};
  HWY_ALIGN float row[2 * HWY_MAX_BYTES / sizeof(float)];
  if (bias)
    for (Index j = 0; j < columns; ++j) shift[j] = bias[j];
  hn::Store(hn::MulAdd(low, scale, hn::Load(d, shift)), d, row);
  hn::Store(hn::MulAdd(high, scale, hn::Load(d, shift + lanes)), d, row + lanes);
  for (Index j = 0; j < columns; ++j) c[j] = row[j];
}

/// One row of one panel of a sum that goes on.
HWY_INLINE void Load(const float* from, Index columns, V* low, V* high) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  HWY_ALIGN float row[2 * HWY_MAX_BYTES / sizeof(float)] = {};
  if (columns < 2 * lanes) {
    for (Index j = 0; j < columns; ++j) row[j] = from[j];
    from = row;
  }
  *low = hn::LoadU(d, from);
  *high = hn::LoadU(d, from + lanes);
}

// What is read next is asked for once for so many numbers of depth.
constexpr Index kGroup = 4;

/// R rows × one panel. `tail` < width: only that many columns are stored.
template <int R>
HWY_NOINLINE void Block(const float* HWY_RESTRICT a, Index a_stride, Index step, Index depth,
                        const float* HWY_RESTRICT b, Index tail, float scale, const Addend& addend, float* c,
                        Index c_stride, Fetch& all) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  HWY_ALIGN float total[R][2 * HWY_MAX_BYTES / sizeof(float)];
  V low[R], high[R];
  if (addend.goes_on) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      Load(addend.data + r * addend.stride, tail, &low[r], &high[r]);
      hn::Store(low[r], d, total[r]);
      hn::Store(high[r], d, total[r] + lanes);
    }
  }
  Fetch fetch = all;
  for (Index from = 0; from == 0 || from < depth; from += chunk) {  // without depth the sums are 0
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) low[r] = high[r] = hn::Zero(d);
    Index k = HWY_MIN(chunk, depth - from);
    while (k > 0) {
      fetch.some();
      Index i = HWY_MIN(kGroup, k);
      k -= i;
#pragma GCC unroll 1
      for (; i > 0; --i, a += step, b += 2 * lanes) {
        const V b0 = hn::Load(d, b);
        const V b1 = hn::Load(d, b + lanes);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const V x = hn::Set(d, a[r * a_stride]);
          low[r] = hn::MulAdd(x, b0, low[r]);
          high[r] = hn::MulAdd(x, b1, high[r]);
        }
      }
    }
    if (from > 0 || addend.goes_on) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        low[r] = hn::Add(low[r], hn::Load(d, total[r]));
        high[r] = hn::Add(high[r], hn::Load(d, total[r] + lanes));
      }
    }
    if (from + chunk < depth) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        hn::Store(low[r], d, total[r]);
        hn::Store(high[r], d, total[r] + lanes);
      }
    }
  }
  all = fetch;
  const V s = hn::Set(d, scale);
  const bool adds = addend.data && !addend.goes_on;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
    Store(low[r], high[r], s, adds ? addend.data + r * addend.stride : nullptr, tail, c + r * c_stride);
}

/// Block for a number of rows that is known only now.
template <int R, class... Rest>
HWY_INLINE void BlockOf(Index rows, Rest&&... rest) {
  if (rows == R)
    Block<R>(rest...);
  else if constexpr (R > 1)
    BlockOf<R - 1>(rows, rest...);
}

/// One row × some panels at once, because a single chain of multiply-adds would wait for its own latency. The sums run
/// in the same order as in Block, so a row's result does not depend on which rows it is computed with. The loop is
/// written out in both: given its body as a function, GCC 12 makes a sixth slower code of it.
constexpr int kPanels = 4;
HWY_NOINLINE void OneRow(const float* HWY_RESTRICT a, Index step, Index depth, const float* HWY_RESTRICT b,
                         Index b_step, Index panel_stride, Index columns, float scale, const float* bias, float* c,
                         Fetch& all) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V low[kPanels], high[kPanels], low_total[kPanels], high_total[kPanels];
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) low_total[p] = high_total[p] = hn::Zero(d);
  Fetch fetch = all;
  for (Index from = 0; from < depth; from += chunk) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) low[p] = high[p] = hn::Zero(d);
    Index k = HWY_MIN(chunk, depth - from);
    while (k > 0) {
      fetch.some();
      Index i = HWY_MIN(kGroup, k);
      k -= i;
#pragma GCC unroll 1
      for (; i > 0; --i, a += step, b += b_step) {
        const V x = hn::Set(d, *a);
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) {
          low[p] = hn::MulAdd(x, hn::LoadU(d, b + p * panel_stride), low[p]);
          high[p] = hn::MulAdd(x, hn::LoadU(d, b + p * panel_stride + lanes), high[p]);
        }
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      low_total[p] = hn::Add(low_total[p], low[p]);
      high_total[p] = hn::Add(high_total[p], high[p]);
    }
  }
  all = fetch;
  const V s = hn::Set(d, scale);
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p)
    Store(low_total[p], high_total[p], s, bias ? bias + p * 2 * lanes : nullptr,
          HWY_MIN(2 * lanes, columns - p * 2 * lanes), c + p * 2 * lanes);
}

/// One row × one panel: the chains of so many chunks at once instead. Same sums, in the same order.
constexpr int kChunks = 4;
HWY_NOINLINE void OneRowOfPanel(const float* HWY_RESTRICT a, Index step, Index depth, const float* HWY_RESTRICT b,
                                Index b_step, Index columns, float scale, const float* bias, float* c, Fetch& all) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d)), next_a = chunk * step, next_b = chunk * b_step;
  V low[kChunks], high[kChunks], low_total = hn::Zero(d), high_total = hn::Zero(d);
  Fetch fetch = all;
  Index from = 0;
  for (; from + kChunks * chunk <= depth; from += kChunks * chunk) {
#pragma GCC unroll 4
    for (int p = 0; p < kChunks; ++p) low[p] = high[p] = hn::Zero(d);
    static_assert(kGroup == kChunks);
#pragma GCC unroll 1
    for (Index i = 0; i < chunk; ++i, a += step, b += b_step) {
      fetch.some();
#pragma GCC unroll 4
      for (int p = 0; p < kChunks; ++p) {
        const V x = hn::Set(d, a[p * next_a]);
        low[p] = hn::MulAdd(x, hn::LoadU(d, b + p * next_b), low[p]);
        high[p] = hn::MulAdd(x, hn::LoadU(d, b + p * next_b + lanes), high[p]);
      }
    }
    a += (kChunks - 1) * next_a;
    b += (kChunks - 1) * next_b;
#pragma GCC unroll 4
    for (int p = 0; p < kChunks; ++p) {
      low_total = hn::Add(low_total, low[p]);
      high_total = hn::Add(high_total, high[p]);
    }
  }
  for (; from < depth; from += chunk) {
    low[0] = high[0] = hn::Zero(d);
    const Index end = HWY_MIN(depth, from + chunk);
#pragma GCC unroll 1
    for (Index k = from; k < end; ++k, a += step, b += b_step) {
      if ((k - from) % kGroup == 0) fetch.some();
      const V x = hn::Set(d, *a);
      low[0] = hn::MulAdd(x, hn::LoadU(d, b), low[0]);
      high[0] = hn::MulAdd(x, hn::LoadU(d, b + lanes), high[0]);
    }
    low_total = hn::Add(low_total, low[0]);
    high_total = hn::Add(high_total, high[0]);
  }
  all = fetch;
  Store(low_total, high_total, hn::Set(d, scale), bias, HWY_MIN(2 * lanes, columns), c);
}

void MultiplyRow(const Rows& left, Index depth, const float* b, Index b_step, Index panel_stride, Index columns,
                 float scale, const float* bias, float* c, Fetch& fetch) {
  const Index panel = Width();
  Index j = 0;
  for (; j + (kPanels - 1) * panel < columns; j += kPanels * panel)
    OneRow(left.data, left.step, depth, b + j / panel * panel_stride, b_step, panel_stride, columns - j, scale,
           bias ? bias + j : nullptr, c + j, fetch);
  for (; j < columns; j += panel)
    OneRowOfPanel(left.data, left.step, depth, b + j / panel * panel_stride, b_step, columns - j, scale,
                  bias ? bias + j : nullptr, c + j, fetch);
}

void MultiplyInPlace(const float* a, Index depth, const float* b, Index b_stride, Index columns, float* c) {
  Fetch nothing({}, 1);
  MultiplyRow({a, 0}, depth, b, b_stride, Width(), columns, 1.0f, nullptr, c, nothing);
}

void Multiply(const Rows& left, Index rows, Index depth, const float* b, Index panel_stride, Index columns, float scale,
              const Addend& addend, float* c, Index c_stride, const Ahead& ahead) {
  const Index panel = Width(), a_stride = left.stride, step = left.step;
  const float* const a = left.data;
  // As even as possible: a block of two or three rows would wait for its own sums.
  const Index blocks = (rows + kRows - 1) / kRows, groups = (depth + kGroup - 1) / kGroup;
  if (rows == 1) {
    Fetch fetch(ahead, groups * HWY_MAX(columns / (kPanels * panel), 1));
    MultiplyRow(left, depth, b, panel, panel_stride, columns, scale, addend.data, c, fetch);
    return;
  }
  Fetch fetch(ahead, groups * blocks * ((columns + panel - 1) / panel));
  for (Index j = 0; j < columns; j += panel, b += panel_stride) {
    const Index tail = HWY_MIN(panel, columns - j);
    const auto added = [&](Index row) {
      return addend.data ? Addend{addend.data + row * addend.stride + j, addend.stride, addend.goes_on} : Addend{};
    };
    Index r = 0;
    for (Index block = 0; block < blocks; ++block) {
      const Index count = (rows - r + blocks - block - 1) / (blocks - block);
      BlockOf<kRows>(count, a + r * a_stride, a_stride, step, depth, b, tail, scale, added(r), c + r * c_stride + j,
                     c_stride, fetch);
      r += count;
    }
  }
}

/// out[k · out_stride + c] = in[c · in_stride + k] for c < rows, k < columns: four by four in registers.
void Transpose(const float* HWY_RESTRICT in, Index in_stride, Index rows, Index columns, float* HWY_RESTRICT out,
               Index out_stride) {
  Index c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  for (; c + 4 <= rows; c += 4) {
    const float* const from = in + c * in_stride;
    Index k = 0;
    for (; k + 4 <= columns; k += 4) {
      const auto r0 = hn::LoadU(d, from + k), r1 = hn::LoadU(d, from + in_stride + k),
                 r2 = hn::LoadU(d, from + 2 * in_stride + k), r3 = hn::LoadU(d, from + 3 * in_stride + k);
      const auto low01 = hn::InterleaveLower(d, r0, r1), high01 = hn::InterleaveUpper(d, r0, r1),
                 low23 = hn::InterleaveLower(d, r2, r3), high23 = hn::InterleaveUpper(d, r2, r3);
      float* const to = out + k * out_stride + c;
      hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, to);
      hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, to + out_stride);
      hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, to + 2 * out_stride);
      hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, to + 3 * out_stride);
    }
    for (; k < columns; ++k)
      for (Index i = 0; i < 4; ++i) out[k * out_stride + c + i] = from[i * in_stride + k];
  }
#endif
  for (; c < rows; ++c)
    for (Index k = 0; k < columns; ++k) out[k * out_stride + c] = in[c * in_stride + k];
}

/// out (rows, panel) = `rows` rows of `columns` floats, in_stride apart; zeros in the columns that are not used.
void CopyRows(const float* HWY_RESTRICT in, Index in_stride, Index rows, Index columns, float* HWY_RESTRICT out) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d)), panel = 2 * lanes;
  for (Index k = 0; k < rows; ++k, in += in_stride, out += panel) {
    if (columns == panel) {
      hn::Store(hn::LoadU(d, in), d, out);
      hn::Store(hn::LoadU(d, in + lanes), d, out + lanes);
    } else {
      for (Index c = 0; c < panel; ++c) out[c] = c < columns ? in[c] : 0.0f;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::panels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::panels {

HWY_EXPORT(Width);
HWY_EXPORT(Multiply);
HWY_EXPORT(MultiplyInPlace);
HWY_EXPORT(Transpose);
HWY_EXPORT(CopyRows);

Index width() {
  return HWY_DYNAMIC_DISPATCH(Width)();
}

Index padded(Index columns) {
  const Index w = width();
  return (columns + w - 1) / w * w;
}

Index packed_size(Index depth, Index columns) {
  return depth * padded(columns);
}

namespace {
/// pack() of numbers as they are stored.
void pack_stored(const Tensor& matrix, float* out) {
  const Index depth = matrix.dim(0), columns = matrix.dim(1), w = width();
  const std::optional<stored::Lines> lines = matrix.lines();
  if (columns % w) std::fill(out + columns / w * depth * w, out + packed_size(depth, columns), 0.0f);
  const auto each_panel = [&](auto fill) {
    for (Index j = 0; j < columns; j += w) fill(j, std::min(w, columns - j), out + j * depth);
  };
  if (lines && lines->rows) {
    // A few rows into all panels before the next: what lies side by side in memory is read together.
    constexpr Index some = 16;
    for (Index k = 0; k < depth; k += some)
      each_panel([&](Index j, Index used, float* panel) {
        stored::unpack(lines->from(k, j), std::min(some, depth - k), used, panel + k * w, w, {});
      });
  } else if (lines && stored::begins_at(matrix.kind(), depth)) {
    each_panel(
        [&](Index j, Index used, float* panel) { stored::unpack(lines->from(0, j), depth, used, panel, w, {}); });
  } else if (matrix.stride(0) == 1 || matrix.stride(1) == 1) {  // parts of blocks, or blocks across what is summed
    const auto decoded = [&](Index k, Index j, Index count, float* to) {
      stored::decode(matrix.kind(), matrix.stored(), matrix.first() + k * matrix.stride(0) + j * matrix.stride(1),
                     count, to);
    };
    std::vector<float> column(static_cast<std::size_t>(depth));
    each_panel([&](Index j, Index used, float* panel) {
      if (matrix.stride(1) == 1)
        for (Index k = 0; k < depth; ++k) decoded(k, j, used, panel + k * w);
      else
        for (Index c = 0; c < used; ++c) {
          decoded(0, j + c, depth, column.data());
          for (Index k = 0; k < depth; ++k) panel[k * w + c] = nth(column, k);
        }
    });
  } else {
    each_panel([&](Index j, Index used, float* panel) {
      for (Index k = 0; k < depth; ++k)
        for (Index c = 0; c < used; ++c) panel[k * w + c] = matrix.at(k, j + c);
    });
  }
}
}  // namespace

void pack(const Tensor& matrix, float* out) {
  if (matrix.kind() != Stored::f32) return pack_stored(matrix, out);
  const Index depth = matrix.dim(0), columns = matrix.dim(1), w = width();
  const Index row_step = matrix.stride(0), column_step = matrix.stride(1);
  for (Index j = 0; j < columns; j += w) {
    const Index used = std::min(w, columns - j);
    const float* in = matrix.data() + j * column_step;
    if (column_step == 1) {
      HWY_DYNAMIC_DISPATCH(CopyRows)(in, row_step, depth, used, out);
    } else {  // transposed: read along the matrix's rows
      if (used < w) std::fill(out, out + depth * w, 0.0f);
      if (row_step == 1) {
        HWY_DYNAMIC_DISPATCH(Transpose)(in, column_step, used, depth, out, w);
        out += depth * w;
        continue;
      }
      for (Index c = 0; c < used; ++c)
        for (Index k = 0; k < depth; ++k) out[k * w + c] = in[k * row_step + c * column_step];
    }
    out += depth * w;
  }
}

void multiply(const Rows& a, Index rows, Index depth, const float* b, Index panel_stride, Index columns, float scale,
              const Addend& addend, float* c, Index c_stride, const Ahead& ahead) {
  HWY_DYNAMIC_DISPATCH(Multiply)(a, rows, depth, b, panel_stride, columns, scale, addend, c, c_stride, ahead);
}

void multiply_streamed(const Rows& a, Index rows, Index depth, const float* b, Index panel_stride, Index columns,
                       float scale, float* c, Index c_stride) {
  // One row reads B once anyway. A few panels' depth fits the nearest cache as it is; of longer ones so much, 16 KB.
  constexpr Index shallow = 256, part = 128;
  if (rows == 1) return multiply(a, rows, depth, b, panel_stride, columns, scale, {}, c, c_stride);
  const Index panel = width(), deep = depth <= shallow ? std::max<Index>(depth, 1) : part;
  for (Index k = 0; k == 0 || k < depth; k += deep)
    for (Index j = 0; j < columns; j += panel) {
      const Index down = std::min(deep, depth - k);
      const float* const from = b + j / panel * panel_stride + k * panel;
      const bool last = j + panel >= columns;  // then the first columns come, of what lies deeper
      const Index coming = last ? std::clamp<Index>(depth - k - deep, 0, deep) : down;
      multiply({a.data + k * a.step, a.stride, a.step}, rows, down, from, panel_stride, std::min(panel, columns - j),
               k + deep < depth ? 1.0f : scale, k > 0 ? Addend{c + j, c_stride, true} : Addend{}, c + j, c_stride,
               coming > 0 ? Ahead::of(last ? b + (k + deep) * panel : from + panel_stride, coming * panel) : Ahead{});
    }
}

void multiply_in_place(const float* a, Index depth, const float* b, Index b_stride, Index columns, float* c) {
  assert(columns % width() == 0);
  HWY_DYNAMIC_DISPATCH(MultiplyInPlace)(a, depth, b, b_stride, columns, c);
}

}  // namespace headscope::panels
#endif
