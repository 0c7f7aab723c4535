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
