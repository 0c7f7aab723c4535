// Loops over numbers by vectors of whatever width there is. Compiled once per instruction set.

#if defined(HEADSCOPE_VECTOR_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_VECTOR_LOOPS_INL_H
#undef HEADSCOPE_VECTOR_LOOPS_INL_H
#else
#define HEADSCOPE_VECTOR_LOOPS_INL_H
#endif

#include "core/tensor/tensor.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::vector_loops {
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

}  // namespace HWY_NAMESPACE
}  // namespace headscope::vector_loops
HWY_AFTER_NAMESPACE();

#endif
