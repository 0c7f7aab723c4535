#include "core/tensor/panels.h"

#include <algorithm>
#include <cstring>

// This file is compiled once per instruction set by foreach_target.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
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

/// R rows × one panel. `tail` < width: only that many columns are stored.
template <int R>
HWY_INLINE void Block(const float* HWY_RESTRICT a, Index a_stride, Index depth, const float* HWY_RESTRICT b, Index tail,
                      float scale, const float* bias, float* HWY_RESTRICT c, Index c_stride) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V low[R], high[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) low[r] = high[r] = hn::Zero(d);
  for (Index k = 0; k < depth; ++k) {
    const V b0 = hn::Load(d, b + k * 2 * lanes);
    const V b1 = hn::Load(d, b + k * 2 * lanes + lanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V x = hn::Set(d, a[r * a_stride + k]);
      low[r] = hn::MulAdd(x, b0, low[r]);
      high[r] = hn::MulAdd(x, b1, high[r]);
    }
  }
  const V s = hn::Set(d, scale);
  if (tail == 2 * lanes) {
    const V bias0 = bias ? hn::LoadU(d, bias) : hn::Zero(d);
    const V bias1 = bias ? hn::LoadU(d, bias + lanes) : hn::Zero(d);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      hn::StoreU(hn::MulAdd(low[r], s, bias0), d, c + r * c_stride);
      hn::StoreU(hn::MulAdd(high[r], s, bias1), d, c + r * c_stride + lanes);
    }
    return;
  }
  HWY_ALIGN float row[2 * HWY_MAX_BYTES / sizeof(float)];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    hn::Store(hn::Mul(low[r], s), d, row);
    hn::Store(hn::Mul(high[r], s), d, row + lanes);
    for (Index j = 0; j < tail; ++j) c[r * c_stride + j] = row[j] + (bias ? bias[j] : 0.0f);
  }
}

/// One row: four partial sums, because a single chain of multiply-adds would wait for its own latency.
HWY_INLINE void OneRow(const float* HWY_RESTRICT a, Index depth, const float* HWY_RESTRICT b, Index tail, float scale,
                       const float* bias, float* HWY_RESTRICT c) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V low[4], high[4];
#pragma GCC unroll 4
  for (int u = 0; u < 4; ++u) low[u] = high[u] = hn::Zero(d);
  Index k = 0;
  for (; k + 4 <= depth; k += 4) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      const V x = hn::Set(d, a[k + u]);
      low[u] = hn::MulAdd(x, hn::Load(d, b + (k + u) * 2 * lanes), low[u]);
      high[u] = hn::MulAdd(x, hn::Load(d, b + (k + u) * 2 * lanes + lanes), high[u]);
    }
  }
  for (; k < depth; ++k) {
    const V x = hn::Set(d, a[k]);
    low[0] = hn::MulAdd(x, hn::Load(d, b + k * 2 * lanes), low[0]);
    high[0] = hn::MulAdd(x, hn::Load(d, b + k * 2 * lanes + lanes), high[0]);
  }
  HWY_ALIGN float row[2 * HWY_MAX_BYTES / sizeof(float)];
  hn::Store(hn::Add(hn::Add(low[0], low[1]), hn::Add(low[2], low[3])), d, row);
  hn::Store(hn::Add(hn::Add(high[0], high[1]), hn::Add(high[2], high[3])), d, row + lanes);
  for (Index j = 0; j < tail; ++j) c[j] = row[j] * scale + (bias ? bias[j] : 0.0f);
}

void Multiply(const float* a, Index a_stride, Index rows, Index depth, const float* b, Index panel_stride,
              Index columns, float scale, const float* bias, float* c, Index c_stride) {
  const Index panel = Width();
  for (Index j = 0; j < columns; j += panel, b += panel_stride) {
    const Index tail = HWY_MIN(panel, columns - j);
    const float* const panel_bias = bias ? bias + j : nullptr;
    Index r = 0;
    for (; r + kRows <= rows; r += kRows)
      Block<kRows>(a + r * a_stride, a_stride, depth, b, tail, scale, panel_bias, c + r * c_stride + j, c_stride);
    const float* const rest = a + r * a_stride;
    float* const out = c + r * c_stride + j;
    switch (rows - r) {
      case 7:
        Block<7>(rest, a_stride, depth, b, tail, scale, panel_bias, out, c_stride);
        break;
      case 6:
        Block<6>(rest, a_stride, depth, b, tail, scale, panel_bias, out, c_stride);
        break;
      case 5:
        Block<5>(rest, a_stride, depth, b, tail, scale, panel_bias, out, c_stride);
        break;
      case 4:
        Block<4>(rest, a_stride, depth, b, tail, scale, panel_bias, out, c_stride);
        break;
      case 3:
        Block<3>(rest, a_stride, depth, b, tail, scale, panel_bias, out, c_stride);
        break;
      case 2:
        Block<2>(rest, a_stride, depth, b, tail, scale, panel_bias, out, c_stride);
        break;
      case 1:
        OneRow(rest, depth, b, tail, scale, panel_bias, out);
        break;
      default:
        break;
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

void pack(const Tensor& matrix, float* out) {
  const Index depth = matrix.dim(0), columns = matrix.dim(1), w = width();
  const Index row_step = matrix.stride(0), column_step = matrix.stride(1);
  for (Index j = 0; j < columns; j += w) {
    const Index used = std::min(w, columns - j);
    const float* in = matrix.data() + j * column_step;
    if (column_step == 1) {
      for (Index k = 0; k < depth; ++k) {
        std::memcpy(out + k * w, in + k * row_step, static_cast<std::size_t>(used) * sizeof(float));
        std::fill(out + k * w + used, out + (k + 1) * w, 0.0f);
      }
    } else {  // transposed: read along the matrix's rows
      if (used < w) std::fill(out, out + depth * w, 0.0f);
      for (Index c = 0; c < used; ++c)
        for (Index k = 0; k < depth; ++k) out[k * w + c] = in[k * row_step + c * column_step];
    }
    out += depth * w;
  }
}

void multiply(const float* a, Index a_stride, Index rows, Index depth, const float* b, Index panel_stride,
              Index columns, float scale, const float* bias, float* c, Index c_stride) {
  HWY_DYNAMIC_DISPATCH(Multiply)(a, a_stride, rows, depth, b, panel_stride, columns, scale, bias, c, c_stride);
}

}  // namespace headscope::panels
#endif
