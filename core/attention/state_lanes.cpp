#include "core/attention/state_lanes.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/state_lanes.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target, or Highway's maths would be compiled for one instruction set only.
#include "core/attention/vector_loops-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::state_lanes {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using vector_loops::HWY_NAMESPACE::Each;
using vector_loops::HWY_NAMESPACE::Sum;

template <class D>
HWY_INLINE void AddTo(D d, float* to, hn::Vec<D> value) {
  hn::StoreU(hn::Add(hn::LoadU(d, to), value), d, to);
}

void Decays(const Tile& tile, Index n, WritableRows out) {
  const Index own = tile.own();
  for (Index t = 0; t < n; ++t) {
    const float* const step = tile.delta[t];
    if (!tile.columns)
      Each(tile.states, [&](auto d, Index i) HWY_ATTR {
        hn::StoreU(hn::Exp(d, hn::Mul(hn::Set(d, *step), hn::LoadU(d, tile.a + i))), d, out[t] + i);
      });
    for (Index i = 0; tile.columns && i < tile.states; ++i)
      Each(own, [&](auto d, Index p) HWY_ATTR {
        const auto pace = hn::LoadU(d, tile.a + i * own + p);
        hn::StoreU(hn::Exp(d, hn::Mul(hn::LoadU(d, step + p), pace)), d, out[t] + i * own + p);
      });
  }
}

/// The number of column p, or the one of all.
template <bool kColumns, class D>
HWY_INLINE hn::Vec<D> Number(D d, const float* numbers, Index p) {
  if constexpr (kColumns)
    return hn::LoadU(d, numbers + p);
  else
    return hn::Set(d, *numbers);
}

template <bool kColumns>
HWY_INLINE void MixOne(const Tile& tile, Index t, const float* keep, const float* before, float* h, float* y) {
  const float *const x = tile.x[t], *const step = tile.delta[t], *const b = tile.b[t], *const c = tile.c[t];
  const Index own = tile.own();
  Each(tile.width, [&](auto d, Index p) HWY_ATTR {
    const auto in = hn::LoadU(d, x + p), write = hn::Mul(Number<kColumns>(d, step, p), in);
    auto out = hn::Mul(Number<kColumns>(d, tile.d, p), in);
    for (Index i = 0, at = p; i < tile.states; ++i, at += tile.width) {
      const auto kept = hn::Mul(Number<kColumns>(d, keep + i * own, p), hn::LoadU(d, before + at));
      const auto state = hn::MulAdd(hn::Set(d, b[i]), write, kept);
      hn::StoreU(state, d, h + at);
      out = hn::MulAdd(hn::Set(d, c[i]), state, out);
    }
    hn::StoreU(out, d, y + p);
  });
}

void Mix(const Tile& tile, Index n, Rows keep, const float* before, WritableRows h, WritableRows y) {
  for (Index t = 0; t < n; before = h[t], ++t)
    if (tile.columns)
      MixOne<true>(tile, t, keep[t], before, h[t], y[t]);
    else
      MixOne<false>(tile, t, keep[t], before, h[t], y[t]);
}

template <bool kColumns>
HWY_INLINE void BackOne(const Tile& tile, Index t, const float* keep, const float* before, const float* h,
                        const float* dy, float* g, float* scratch, const TileGradients& out) {
  const float *const x = tile.x[t], *const step = tile.delta[t], *const b = tile.b[t], *const c = tile.c[t];
  const Index width = tile.width, own = tile.own();
  // What went in, Δ x; Σ B g, its gradient; Σ a exp(Δ a) g h, that of Δ through the decays.
  float *const write = scratch, *const written = write + width, *const kept = written + width;
  Each(width, [&](auto d, Index p) HWY_ATTR {
    hn::StoreU(hn::Mul(Number<kColumns>(d, step, p), hn::LoadU(d, x + p)), d, write + p);
    hn::StoreU(hn::Zero(d), d, written + p);
    hn::StoreU(hn::Zero(d), d, kept + p);
  });
  const float *pace = tile.a, *earlier = before;
  float *d_pace = out.a, *slope = g;
  for (Index i = 0; i < tile.states; ++i) {
    out.b[t][i] += Sum(width, [&](auto d, Index p) HWY_ATTR {
      const auto here = hn::MulAdd(hn::Set(d, c[i]), hn::LoadU(d, dy + p), hn::LoadU(d, slope + p));
      hn::StoreU(here, d, slope + p);
      AddTo(d, written + p, hn::Mul(hn::Set(d, b[i]), here));
      return hn::Mul(hn::LoadU(d, write + p), here);
    });
    const float change = Sum(width, [&](auto d, Index p) HWY_ATTR {
      const auto left = hn::Mul(Number<kColumns>(d, keep, p), hn::LoadU(d, slope + p));
      hn::StoreU(left, d, slope + p);
      const auto moved = hn::Mul(left, hn::LoadU(d, earlier + p));
      AddTo(d, kept + p, hn::Mul(Number<kColumns>(d, pace, p), moved));
      if constexpr (kColumns) AddTo(d, d_pace + p, hn::Mul(hn::LoadU(d, step + p), moved));
      return moved;
    });
    if constexpr (!kColumns) *d_pace += *step * change;
    out.c[t][i] +=
        Sum(width, [&](auto d, Index p) HWY_ATTR { return hn::Mul(hn::LoadU(d, h + p), hn::LoadU(d, dy + p)); });
    slope += width, earlier += width, h += width;
    keep += own, pace += own, d_pace += own;
  }
  float *const dx = out.x[t], *const d_delta = out.delta[t];
  const float steps = Sum(width, [&](auto d, Index p) HWY_ATTR {
    const auto in = hn::LoadU(d, x + p), up = hn::LoadU(d, dy + p), through = hn::LoadU(d, written + p);
    const auto to_x = hn::MulAdd(Number<kColumns>(d, step, p), through, hn::Mul(Number<kColumns>(d, tile.d, p), up));
    hn::StoreU(out.add_x ? hn::Add(hn::LoadU(d, dx + p), to_x) : to_x, d, dx + p);
    const auto to_step = hn::MulAdd(in, through, hn::LoadU(d, kept + p));
    if constexpr (kColumns) {
      hn::StoreU(out.add_delta ? hn::Add(hn::LoadU(d, d_delta + p), to_step) : to_step, d, d_delta + p);
      AddTo(d, out.d + p, hn::Mul(in, up));
    }
    return to_step;
  });
  if constexpr (!kColumns) {
    *d_delta = steps + (out.add_delta ? *d_delta : 0.0f);
    *out.d += Sum(width, [&](auto d, Index p) HWY_ATTR { return hn::Mul(hn::LoadU(d, x + p), hn::LoadU(d, dy + p)); });
  }
}

void Back(const Tile& tile, Index n, Rows keep, const float* before, Rows h, Rows dy, float* g, float* scratch,
          const TileGradients& out) {
  for (Index t = n - 1; t >= 0; --t) {
    const float* const earlier = t > 0 ? h[t - 1] : before;
    if (tile.columns)
      BackOne<true>(tile, t, keep[t], earlier, h[t], dy[t], g, scratch, out);
    else
      BackOne<false>(tile, t, keep[t], earlier, h[t], dy[t], g, scratch, out);
  }
}

void Implied(const Tile& lane, Index t, Rows keep, float* reach, float* row) {
  std::copy_n(lane.c[t], lane.states, reach);
  for (Index s = t; s >= 0; --s) {
    const float *const b = lane.b[s], *const kept = keep[s];
    row[s] = *lane.delta[s] * Sum(lane.states, [&](auto d, Index i) HWY_ATTR {
      const auto here = hn::LoadU(d, reach + i);
      hn::StoreU(hn::Mul(here, hn::LoadU(d, kept + i)), d, reach + i);
      return hn::Mul(here, hn::LoadU(d, b + i));
    });
    // What float32 holds below 1e-38 has few digits, and takes a processor long.
    if (s % 16 == 0 &&
        Sum(lane.states, [&](auto d, Index i) HWY_ATTR { return hn::Abs(hn::LoadU(d, reach + i)); }) < 1e-35f)
      return std::fill(row, row + s, 0.0f);
  }
}

/// NaN stays NaN in both: Highway's Exp would make 0 of it.
template <class D>
HWY_INLINE hn::Vec<D> ExpOrZero(D d, hn::Vec<D> x) {
  const auto least = hn::Set(d, -80.0f);
  const auto power = hn::IfThenElseZero(hn::Ge(x, least), hn::Exp(d, hn::Max(x, least)));
  return hn::IfThenElse(hn::IsNaN(x), x, power);
}
template <class D>
HWY_INLINE hn::Vec<D> SeenOrZero(D d, hn::Vec<D> x) {
  return hn::IfThenZeroElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-35f)), x);
}

void Spread(const Bundle& in, Index n, const Factors& out) {
  for (Index t = 0; t < n; ++t) {
    float *keep = out.keep + t * in.depth, *write = out.write + t * in.depth, *read = out.read + t * in.depth;
    const float* a = in.a;
    for (Index lane = 0; lane < in.lanes; ++lane) {
      const float *const b = in.b[t] + in.place[lane], *const c = in.c[t] + in.place[lane];
      const float step = in.delta[t][lane];
      Each(in.states, [&](auto d, Index i) HWY_ATTR {
        const auto steps = hn::Set(d, step);
        hn::StoreU(ExpOrZero(d, hn::Mul(steps, hn::LoadU(d, a + i))), d, keep + i);
        hn::StoreU(hn::Mul(steps, hn::LoadU(d, b + i)), d, write + i);
        hn::StoreU(hn::LoadU(d, c + i), d, read + i);
      });
      a += in.states, keep += in.states, write += in.states, read += in.states;
    }
  }
}

void Passed(const Bundle& in, const float* span, float* out) {
  for (Index lane = 0, at = 0; lane < in.lanes; ++lane, at += in.states)
    Each(in.states, [&](auto d, Index i) HWY_ATTR {
      hn::StoreU(ExpOrZero(d, hn::Mul(hn::Set(d, span[lane]), hn::LoadU(d, in.a + at + i))), d, out + at + i);
    });
}

void Reaches(const double* sums, double upto, double a, const float* delta, Index n, float* out) {
  for (Index s = 0; s < n; ++s) out[s] = static_cast<float>(a * (upto - sums[s]));
  Each(n, [&](auto d, Index s) HWY_ATTR {
    hn::StoreU(hn::Mul(ExpOrZero(d, hn::LoadU(d, out + s)), hn::LoadU(d, delta + s)), d, out + s);
  });
}

void Scaled(const float* product, const float* reach, float left, Index n, bool add, float* out) {
  Each(n, [&](auto d, Index s) HWY_ATTR {
    const auto factor = hn::Mul(hn::Set(d, left), hn::LoadU(d, reach + s)), own = hn::LoadU(d, product + s);
    hn::StoreU(add ? hn::MulAdd(own, factor, hn::LoadU(d, out + s)) : hn::Mul(own, factor), d, out + s);
  });
}

using Whole = hn::ScalableTag<float>;

void Since(const Factors& of, Index n, Index skip, Index depth, float* out) {
  const Whole d;
  for (Index k = 0; k < depth; k += static_cast<Index>(hn::Lanes(d))) {
    auto left = hn::Set(d, 1.0f);
    for (Index t = 0; t < n; ++t) {
      left = SeenOrZero(d, hn::Mul(left, hn::LoadU(d, of.keep + t * depth + k)));
      if (t >= skip)
        hn::StoreU(SeenOrZero(d, hn::Mul(left, hn::LoadU(d, of.read + t * depth + k))), d,
                   out + (t - skip) * depth + k);
    }
  }
}

void Until(const Factors& of, Index n, Index depth, float* out) {
  const Whole d;
  for (Index k = 0; k < depth; k += static_cast<Index>(hn::Lanes(d))) {
    auto left = hn::Set(d, 1.0f);
    for (Index s = n - 1; s >= 0; --s) {
      hn::StoreU(SeenOrZero(d, hn::Mul(left, hn::LoadU(d, of.write + s * depth + k))), d, out + s * depth + k);
      left = SeenOrZero(d, hn::Mul(left, hn::LoadU(d, of.keep + s * depth + k)));
    }
  }
}

// So many tokens at once, that decays are read once for all, and so many vectors of each as registers hold.
constexpr int kTokens = 4, kVectors = HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 ? 4 : 2;

template <int V>
HWY_INLINE void Reach(const Factors& of, Index s, Index depth, Index k, hn::Vec<Whole> (&reach)[kTokens][V],
                      float* partial) {
  const Whole d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const float *const write = of.write + s * depth + k, *const keep = of.keep + s * depth + k;
  hn::Vec<Whole> sum[kTokens];
#pragma GCC unroll 4
  for (int r = 0; r < kTokens; ++r) sum[r] = hn::LoadU(d, partial + (r * leaf_tokens + s) * lanes);
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const auto in = hn::LoadU(d, write + v * lanes), kept = hn::LoadU(d, keep + v * lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kTokens; ++r) {
      sum[r] = hn::MulAdd(reach[r][v], in, sum[r]);
      reach[r][v] = hn::Mul(reach[r][v], kept);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kTokens; ++r) hn::StoreU(sum[r], d, partial + (r * leaf_tokens + s) * lanes);
}

/// Tokens [t, t + kTokens) of n, V vectors from k on.
template <int V>
HWY_NOINLINE void AmongSome(const Factors& of, Index t, Index n, Index depth, Index k, float* partial) {
  const Whole d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  hn::Vec<Whole> reach[kTokens][V];
#pragma GCC unroll 4
  for (int r = 0; r < kTokens; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) reach[r][v] = hn::Zero(d);
#pragma GCC unroll 4
  for (int r = kTokens - 1; r >= 0; --r) {
    if (t + r >= n) continue;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) reach[r][v] = hn::LoadU(d, of.read + (t + r) * depth + k + v * lanes);
    Reach<V>(of, t + r, depth, k, reach, partial);
  }
  for (Index s = t - 1; s >= 0; --s) Reach<V>(of, s, depth, k, reach, partial);
}

void UntilOf(const Bundle& in, Index n, float* left, float* out) {
  std::fill_n(left, in.depth, 1.0f);
  for (Index s = n - 1; s >= 0; --s) {
    float* const to = out + s * in.depth;
    Index at = 0;
    for (Index lane = 0; lane < in.lanes; ++lane, at += in.states) {
      const float *const b = in.b[s] + in.place[lane], *const a = in.a + at;
      const float step = in.delta[s][lane];
      Each(in.states, [&](auto d, Index i) HWY_ATTR {
        const auto steps = hn::Set(d, step), had = hn::LoadU(d, left + at + i);
        hn::StoreU(SeenOrZero(d, hn::Mul(had, hn::Mul(steps, hn::LoadU(d, b + i)))), d, to + at + i);
        hn::StoreU(SeenOrZero(d, hn::Mul(had, ExpOrZero(d, hn::Mul(steps, hn::LoadU(d, a + i))))), d, left + at + i);
      });
    }
    std::fill(to + at, to + in.depth, 0.0f);
  }
}

void Among(const Factors& of, Index n, Index first, Index depth, float* partial) {
  const auto lanes = static_cast<Index>(hn::Lanes(Whole()));
  for (Index t = first / kTokens * kTokens; t < n; t += kTokens) {
    float* const own = partial + t * leaf_tokens * lanes;
    Index k = 0;
    for (; k + kVectors * lanes <= depth; k += kVectors * lanes) AmongSome<kVectors>(of, t, n, depth, k, own);
    for (; k < depth; k += lanes) AmongSome<1>(of, t, n, depth, k, own);
  }
}

Index PartialSize() {
  return leaf_tokens * leaf_tokens * static_cast<Index>(hn::Lanes(Whole()));
}

void Summed(const float* partial, Index t, float* row) {
  const Whole d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  for (Index s = 0; s <= t; ++s)
    row[s] = hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, partial + (t * leaf_tokens + s) * lanes)));
}

void DecayRows(float* rows, Index n, Index depth, const float* factors) {
  const Whole d;
  for (Index r = 0; r < n; ++r, rows += depth)
    for (Index k = 0; k < depth; k += static_cast<Index>(hn::Lanes(d)))
      hn::StoreU(SeenOrZero(d, hn::Mul(hn::LoadU(d, rows + k), hn::LoadU(d, factors + k))), d, rows + k);
}

void DecayPanels(float* panels, Index n, Index depth, Index width, const float* factors) {
  for (Index panel = 0; panel < n; ++panel)
    for (Index k = 0; k < depth; ++k, panels += width)
      Each(width, [&](auto d, Index j) HWY_ATTR {
        hn::StoreU(SeenOrZero(d, hn::Mul(hn::LoadU(d, panels + j), hn::Set(d, factors[k]))), d, panels + j);
      });
}

void Softplus(const float* x, const float* bias, Index n, float* out) {
  Each(n, [&](auto d, Index i) HWY_ATTR {
    const auto z = bias ? hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, bias + i)) : hn::LoadU(d, x + i);
    const auto top = hn::Set(d, 20.0f);
    hn::StoreU(hn::IfThenElse(hn::Gt(z, top), z, hn::Log1p(d, hn::Exp(d, hn::Min(z, top)))), d, out + i);
  });
}

void SoftplusBack(const float* x, const float* bias, const float* dy, Index n, float* out) {
  Each(n, [&](auto d, Index i) HWY_ATTR {
    const auto z = bias ? hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, bias + i)) : hn::LoadU(d, x + i);
    // Exp is finite up to 88.7; beyond, the slope is below 1e-38.
    const auto rest = hn::Exp(d, hn::Min(hn::Neg(z), hn::Set(d, 88.0f)));
    hn::StoreU(hn::Div(hn::LoadU(d, dy + i), hn::Add(hn::Set(d, 1.0f), rest)), d, out + i);
  });
}

void MinusExp(const float* x, Index n, float* out) {
  Each(n, [&](auto d, Index i) HWY_ATTR { hn::StoreU(hn::Neg(hn::Exp(d, hn::LoadU(d, x + i))), d, out + i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::state_lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::state_lanes {

HWY_EXPORT(Decays);
HWY_EXPORT(Mix);
HWY_EXPORT(Back);
HWY_EXPORT(Implied);
HWY_EXPORT(Spread);
HWY_EXPORT(Passed);
HWY_EXPORT(Reaches);
HWY_EXPORT(Scaled);
HWY_EXPORT(Since);
HWY_EXPORT(Until);
HWY_EXPORT(UntilOf);
HWY_EXPORT(Among);
HWY_EXPORT(PartialSize);
HWY_EXPORT(Summed);
HWY_EXPORT(DecayRows);
HWY_EXPORT(DecayPanels);
HWY_EXPORT(Softplus);
HWY_EXPORT(SoftplusBack);
HWY_EXPORT(MinusExp);

void decays(const Tile& tile, Index n, WritableRows out) {
  HWY_DYNAMIC_DISPATCH(Decays)(tile, n, out);
}
void mix(const Tile& tile, Index n, Rows keep, const float* before, WritableRows h, WritableRows y) {
  HWY_DYNAMIC_DISPATCH(Mix)(tile, n, keep, before, h, y);
}
void back(const Tile& tile, Index n, Rows keep, const float* before, Rows h, Rows dy, float* g, float* scratch,
          const TileGradients& out) {
  HWY_DYNAMIC_DISPATCH(Back)(tile, n, keep, before, h, dy, g, scratch, out);
}
void implied(const Tile& lane, Index t, Rows keep, float* reach, float* row) {
  HWY_DYNAMIC_DISPATCH(Implied)(lane, t, keep, reach, row);
}
void spread(const Bundle& in, Index n, const Factors& out) {
  HWY_DYNAMIC_DISPATCH(Spread)(in, n, out);
}
void passed(const Bundle& in, const float* span, float* out) {
  HWY_DYNAMIC_DISPATCH(Passed)(in, span, out);
}
void reaches(const double* sums, double upto, double a, const float* delta, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(Reaches)(sums, upto, a, delta, n, out);
}
void scaled(const float* product, const float* reach, float left, Index n, bool add, float* out) {
  HWY_DYNAMIC_DISPATCH(Scaled)(product, reach, left, n, add, out);
}
void since(const Factors& of, Index n, Index skip, Index depth, float* out) {
  HWY_DYNAMIC_DISPATCH(Since)(of, n, skip, depth, out);
}
void until(const Factors& of, Index n, Index depth, float* out) {
  HWY_DYNAMIC_DISPATCH(Until)(of, n, depth, out);
}
void until(const Bundle& in, Index n, float* left, float* out) {
  HWY_DYNAMIC_DISPATCH(UntilOf)(in, n, left, out);
}
void among(const Factors& of, Index n, Index first, Index depth, float* partial) {
  HWY_DYNAMIC_DISPATCH(Among)(of, n, first, depth, partial);
}
Index partial_size() {
  return HWY_DYNAMIC_DISPATCH(PartialSize)();
}
void summed(const float* partial, Index t, float* row) {
  HWY_DYNAMIC_DISPATCH(Summed)(partial, t, row);
}
void decay_rows(float* rows, Index n, Index depth, const float* factors) {
  HWY_DYNAMIC_DISPATCH(DecayRows)(rows, n, depth, factors);
}
void decay_panels(float* panels, Index n, Index depth, Index width, const float* factors) {
  HWY_DYNAMIC_DISPATCH(DecayPanels)(panels, n, depth, width, factors);
}
void softplus(const float* x, const float* bias, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(Softplus)(x, bias, n, out);
}
void softplus_back(const float* x, const float* bias, const float* dy, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(SoftplusBack)(x, bias, dy, n, out);
}
void minus_exp(const float* x, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(MinusExp)(x, n, out);
}

}  // namespace headscope::state_lanes
#endif
