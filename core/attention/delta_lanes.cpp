#include "core/attention/delta_lanes.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/delta_lanes.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target, or Highway's maths would be compiled for one instruction set only.
#include "core/attention/vector_loops-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::delta_lanes {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using vector_loops::HWY_NAMESPACE::Each;
using vector_loops::HWY_NAMESPACE::Sum;

// A column of the state sees nothing of the others: what it recalls, what it takes in, what it gives.
void Mix(const Head& head, Index n, const float* before, WritableRows s, WritableRows o) {
  for (Index t = 0; t < n; before = s[t], ++t) {
    const float *const q = head.q[t], *const k = head.k[t], *const v = head.v[t];
    const float keep = head.keeps[t], beta = *head.beta[t];
    float* const now = s[t];
    float* const out = o[t];
    Each(head.values, [&](auto d, Index p) HWY_ATTR {
      auto recalled = hn::Zero(d);
      for (Index i = 0, at = p; i < head.keys; ++i, at += head.values) {
        const auto kept = hn::Mul(hn::Set(d, keep), hn::LoadU(d, before + at));
        hn::StoreU(kept, d, now + at);
        recalled = hn::MulAdd(hn::Set(d, k[i]), kept, recalled);
      }
      const auto taken = hn::Mul(hn::Set(d, beta), hn::Sub(hn::LoadU(d, v + p), recalled));
      auto given = hn::Zero(d);
      for (Index i = 0, at = p; i < head.keys; ++i, at += head.values) {
        const auto state = hn::MulAdd(hn::Set(d, k[i]), taken, hn::LoadU(d, now + at));
        hn::StoreU(state, d, now + at);
        given = hn::MulAdd(hn::Set(d, q[i]), state, given);
      }
      hn::StoreU(given, d, out + p);
    });
  }
}

// With P = keep · S, r = Pᵀ k, u = β (v − r), S' = P + k uᵀ and o = S'ᵀ q.
void Back(const Head& head, Index n, const float* first, Rows s, Rows d_o, float* g, float* scratch,
          const HeadGradients& out) {
  const Index width = head.values;
  float *const missed = scratch, *const d_taken = missed + width;  // v − r, and the gradient of u
  for (Index t = n - 1; t >= 0; --t) {
    const float* const before = t > 0 ? s[t - 1] : first;
    const float *const q = head.q[t], *const k = head.k[t], *const v = head.v[t], *const up = d_o[t], *now = s[t];
    const float keep = head.keeps[t], beta = *head.beta[t];
    float* const dv = out.v[t];
    Each(width, [&](auto d, Index p) HWY_ATTR {
      const auto from = hn::LoadU(d, up + p);
      auto recalled = hn::Zero(d), through = hn::Zero(d);
      for (Index i = 0, at = p; i < head.keys; ++i, at += width) {
        const auto key = hn::Set(d, k[i]);
        recalled = hn::MulAdd(key, hn::Mul(hn::Set(d, keep), hn::LoadU(d, before + at)), recalled);
        const auto here = hn::MulAdd(hn::Set(d, q[i]), from, hn::LoadU(d, g + at));
        hn::StoreU(here, d, g + at);
        through = hn::MulAdd(key, here, through);
      }
      hn::StoreU(hn::Sub(hn::LoadU(d, v + p), recalled), d, missed + p);
      hn::StoreU(through, d, d_taken + p);
      const auto to_v = hn::Mul(hn::Set(d, beta), through);
      hn::StoreU(out.add_v ? hn::Add(hn::LoadU(d, dv + p), to_v) : to_v, d, dv + p);
    });
    const float d_beta = Sum(
        width, [&](auto d, Index p) HWY_ATTR { return hn::Mul(hn::LoadU(d, d_taken + p), hn::LoadU(d, missed + p)); });
    *out.beta[t] = d_beta + (out.add_beta ? *out.beta[t] : 0.0f);
    float decay = 0;
    for (Index i = 0; i < head.keys; ++i, now += width) {
      float* const slope = g + i * width;
      const float* const old = before + i * width;
      out.q[t][i] =
          Sum(width, [&](auto d, Index p) HWY_ATTR { return hn::Mul(hn::LoadU(d, now + p), hn::LoadU(d, up + p)); });
      out.k[t][i] = Sum(width, [&](auto d, Index p) HWY_ATTR {
        const auto taken = hn::Mul(hn::Set(d, beta), hn::LoadU(d, missed + p));
        const auto kept = hn::Mul(hn::Set(d, keep * beta), hn::LoadU(d, old + p));
        return hn::Sub(hn::Mul(hn::LoadU(d, slope + p), taken), hn::Mul(kept, hn::LoadU(d, d_taken + p)));
      });
      decay += Sum(width, [&](auto d, Index p) HWY_ATTR {
        // dP, then what of it goes further back.
        const auto here = hn::NegMulAdd(hn::Set(d, k[i] * beta), hn::LoadU(d, d_taken + p), hn::LoadU(d, slope + p));
        const auto left = hn::Mul(hn::Set(d, keep), here);
        hn::StoreU(left, d, slope + p);
        return hn::Mul(left, hn::LoadU(d, old + p));
      });
    }
    out.decay[t] = decay;
  }
}

void Implied(const Head& head, Index t, float* reach, float* row) {
  std::copy_n(head.q[t], head.keys, reach);
  for (Index s = t; s >= 0; --s) {
    const float* const k = head.k[s];
    const float met =
        Sum(head.keys, [&](auto d, Index i) HWY_ATTR { return hn::Mul(hn::LoadU(d, k + i), hn::LoadU(d, reach + i)); });
    const float alpha = *head.beta[s] * met, keep = head.keeps[s];
    row[s] = alpha;
    const float left = Sum(head.keys, [&](auto d, Index i) HWY_ATTR {
      const auto here =
          hn::Mul(hn::Set(d, keep), hn::NegMulAdd(hn::Set(d, alpha), hn::LoadU(d, k + i), hn::LoadU(d, reach + i)));
      hn::StoreU(here, d, reach + i);
      return hn::Abs(here);
    });
    // What float32 holds below 1e-38 has few digits, and takes a processor long.
    if (left < 1e-35f) return std::fill(row, row + s, 0.0f);
  }
}

void Sigmoid(const float* x, Index n, float factor, float* out) {
  Each(n, [&](auto d, Index i) HWY_ATTR {
    // Exp is finite up to 88.7; beyond, the result is below 1e-38. What is no number stays none.
    const auto given = hn::LoadU(d, x + i);
    const auto rest = hn::Exp(d, hn::Min(hn::Neg(given), hn::Set(d, 88.0f)));
    const auto open = hn::Div(hn::Set(d, factor), hn::Add(hn::Set(d, 1.0f), rest));
    hn::StoreU(hn::IfThenElse(hn::IsNaN(given), given, open), d, out + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::delta_lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::delta_lanes {

HWY_EXPORT(Mix);
HWY_EXPORT(Back);
HWY_EXPORT(Implied);
HWY_EXPORT(Sigmoid);

void mix(const Head& head, Index n, const float* before, WritableRows s, WritableRows o) {
  HWY_DYNAMIC_DISPATCH(Mix)(head, n, before, s, o);
}
void back(const Head& head, Index n, const float* before, Rows s, Rows d_o, float* g, float* scratch,
          const HeadGradients& out) {
  HWY_DYNAMIC_DISPATCH(Back)(head, n, before, s, d_o, g, scratch, out);
}
void implied(const Head& head, Index t, float* reach, float* row) {
  HWY_DYNAMIC_DISPATCH(Implied)(head, t, reach, row);
}
void sigmoid(const float* x, Index n, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(Sigmoid)(x, n, factor, out);
}

}  // namespace headscope::delta_lanes
#endif
