#include "core/attention/state_lanes.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/state_lanes.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target, or Highway's maths would be compiled for one instruction set only.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::state_lanes {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using One = hn::CappedTag<float, 1>;

/// f(tag, i) for vectors of numbers from i on, and for the rest one by one.
template <class F>
HWY_INLINE void Each(Index n, F f) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  Index i = 0;
  for (; i + lanes <= n; i += lanes) f(d, i);
  for (; i < n; ++i) f(One(), i);
}

/// Σ f(tag, i), likewise.
template <class F>
HWY_INLINE float Sum(Index n, F f) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  auto all = hn::Zero(d);
  Index i = 0;
  for (; i + lanes <= n; i += lanes) all = hn::Add(all, f(d, i));
  float sum = hn::GetLane(hn::SumOfLanes(d, all));
  for (; i < n; ++i) sum += hn::GetLane(f(One(), i));
  return sum;
}

template <class D>
HWY_INLINE void AddTo(D d, float* to, hn::Vec<D> value) {
  hn::StoreU(hn::Add(hn::LoadU(d, to), value), d, to);
}

void Decays(const Lane& lane, Index n, WritableRows out) {
  for (Index t = 0; t < n; ++t) {
    const float step = *lane.delta[t];
    float* const to = out[t];
    Each(lane.states, [&](auto d, Index i) HWY_ATTR {
      hn::StoreU(hn::Exp(d, hn::Mul(hn::Set(d, step), hn::LoadU(d, lane.a + i))), d, to + i);
    });
  }
}

/// P = 1: vectors of states.
HWY_INLINE void MixNarrow(const Lane& lane, const float* keep, Index t, const float* before, float* h, float* y) {
  const float x = *lane.x[t], write = *lane.delta[t] * x;
  const float *const b = lane.b[t], *const c = lane.c[t];
  *y = lane.d * x + Sum(lane.states, [&](auto d, Index i) HWY_ATTR {
         const auto state = hn::MulAdd(hn::LoadU(d, keep + i), hn::LoadU(d, before + i),
                                       hn::Mul(hn::Set(d, write), hn::LoadU(d, b + i)));
         hn::StoreU(state, d, h + i);
         return hn::Mul(state, hn::LoadU(d, c + i));
       });
}

/// Vectors along the width.
HWY_INLINE void MixWide(const Lane& lane, const float* keep, Index t, const float* before, float* h, float* y) {
  const float step = *lane.delta[t];
  const float *const x = lane.x[t], *const b = lane.b[t], *const c = lane.c[t];
  Each(lane.width, [&](auto d, Index p) HWY_ATTR {
    const auto in = hn::LoadU(d, x + p), write = hn::Mul(hn::Set(d, step), in);
    auto out = hn::Mul(hn::Set(d, lane.d), in);
    for (Index i = 0, at = p; i < lane.states; ++i, at += lane.width) {
      const auto state = hn::MulAdd(hn::Set(d, keep[i]), hn::LoadU(d, before + at), hn::Mul(hn::Set(d, b[i]), write));
      hn::StoreU(state, d, h + at);
      out = hn::MulAdd(hn::Set(d, c[i]), state, out);
    }
    hn::StoreU(out, d, y + p);
  });
}

void Mix(const Lane& lane, Index n, Rows keep, const float* before, WritableRows h, WritableRows y) {
  for (Index t = 0; t < n; before = h[t], ++t)
    if (lane.width == 1)
      MixNarrow(lane, keep[t], t, before, h[t], y[t]);
    else
      MixWide(lane, keep[t], t, before, h[t], y[t]);
}

HWY_INLINE void BackNarrow(const Lane& lane, const float* keep, Index t, const float* before, const float* h, float dy,
                           float* g, LaneGradients& out) {
  const float x = *lane.x[t], step = *lane.delta[t];
  const float *const b = lane.b[t], *const c = lane.c[t];
  float *const db = out.b[t], *const dc = out.c[t], *const dx = out.x[t], *const d_delta = out.delta[t];
  const float written = Sum(lane.states, [&](auto d, Index i) HWY_ATTR {
    const auto slope = hn::Set(d, dy);
    const auto here = hn::MulAdd(hn::LoadU(d, c + i), slope, hn::LoadU(d, g + i));
    hn::StoreU(here, d, g + i);
    AddTo(d, dc + i, hn::Mul(hn::LoadU(d, h + i), slope));
    AddTo(d, db + i, hn::Mul(hn::Set(d, step * x), here));
    return hn::Mul(hn::LoadU(d, b + i), here);
  });
  const float kept = Sum(lane.states, [&](auto d, Index i) HWY_ATTR {
    const auto earlier = hn::Mul(hn::LoadU(d, keep + i), hn::LoadU(d, g + i));
    hn::StoreU(earlier, d, g + i);
    const auto change = hn::Mul(earlier, hn::LoadU(d, before + i));
    AddTo(d, out.a + i, hn::Mul(hn::Set(d, step), change));
    return hn::Mul(hn::LoadU(d, lane.a + i), change);
  });
  *dx = step * written + lane.d * dy + (out.add_x ? *dx : 0.0f);
  *d_delta = x * written + kept + (out.add_delta ? *d_delta : 0.0f);
  out.d += x * dy;
}

HWY_INLINE void BackWide(const Lane& lane, const float* keep, Index t, const float* before, const float* h,
                         const float* dy, float* g, LaneGradients& out) {
  const float step = *lane.delta[t];
  const float *const x = lane.x[t], *const b = lane.b[t], *const c = lane.c[t];
  float *const db = out.b[t], *const dc = out.c[t], *const dx = out.x[t], *const d_delta = out.delta[t];
  out.d += Sum(lane.width, [&](auto d, Index p) HWY_ATTR {
    const auto slope = hn::LoadU(d, dy + p), past = hn::Mul(hn::Set(d, lane.d), slope);
    hn::StoreU(out.add_x ? hn::Add(past, hn::LoadU(d, dx + p)) : past, d, dx + p);
    return hn::Mul(hn::LoadU(d, x + p), slope);
  });
  float steps = 0;
  for (Index i = 0; i < lane.states; ++i, before += lane.width, h += lane.width, g += lane.width) {
    const float written = Sum(lane.width, [&](auto d, Index p) HWY_ATTR {
      const auto here = hn::MulAdd(hn::Set(d, c[i]), hn::LoadU(d, dy + p), hn::LoadU(d, g + p));
      hn::StoreU(here, d, g + p);
      AddTo(d, dx + p, hn::Mul(hn::Set(d, step * b[i]), here));
      return hn::Mul(hn::LoadU(d, x + p), here);
    });
    const float change = keep[i] * Sum(lane.width, [&](auto d, Index p) HWY_ATTR {
                           const auto here = hn::LoadU(d, g + p);
                           hn::StoreU(hn::Mul(hn::Set(d, keep[i]), here), d, g + p);
                           return hn::Mul(here, hn::LoadU(d, before + p));
                         });
    dc[i] +=
        Sum(lane.width, [&](auto d, Index p) HWY_ATTR { return hn::Mul(hn::LoadU(d, h + p), hn::LoadU(d, dy + p)); });
    db[i] += step * written;
    out.a[i] += step * change;
    steps += lane.a[i] * change + b[i] * written;
  }
  *d_delta = steps + (out.add_delta ? *d_delta : 0.0f);
}

void Back(const Lane& lane, Index n, Rows keep, const float* before, Rows h, Rows dy, float* g, LaneGradients& out) {
  for (Index t = n - 1; t >= 0; --t) {
    const float* const earlier = t > 0 ? h[t - 1] : before;
    if (lane.width == 1)
      BackNarrow(lane, keep[t], t, earlier, h[t], *dy[t], g, out);
    else
      BackWide(lane, keep[t], t, earlier, h[t], dy[t], g, out);
  }
}

void Implied(const Lane& lane, Index t, Rows keep, float* reach, float* row) {
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
HWY_EXPORT(Softplus);
HWY_EXPORT(SoftplusBack);
HWY_EXPORT(MinusExp);

void decays(const Lane& lane, Index n, WritableRows out) {
  HWY_DYNAMIC_DISPATCH(Decays)(lane, n, out);
}
void mix(const Lane& lane, Index n, Rows keep, const float* before, WritableRows h, WritableRows y) {
  HWY_DYNAMIC_DISPATCH(Mix)(lane, n, keep, before, h, y);
}
void back(const Lane& lane, Index n, Rows keep, const float* before, Rows h, Rows dy, float* g, LaneGradients& out) {
  HWY_DYNAMIC_DISPATCH(Back)(lane, n, keep, before, h, dy, g, out);
}
void implied(const Lane& lane, Index t, Rows keep, float* reach, float* row) {
  HWY_DYNAMIC_DISPATCH(Implied)(lane, t, keep, reach, row);
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
