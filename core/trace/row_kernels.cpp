#include "core/trace/row_kernels.h"

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/trace/row_kernels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target, or Highway's maths would be compiled for one instruction set only.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::row_kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// f(offset, mask of lanes in range) over [0, n): whole vectors first, then one masked by count.
template <class Whole, class Part>
HWY_INLINE void ForEach(Index n, Whole whole, Part part) {
  const Index lanes = static_cast<Index>(hn::Lanes(D()));
  Index k = 0;
  for (; k + lanes <= n; k += lanes) whole(k);
  if (k < n) part(k, static_cast<size_t>(n - k));
}

/// The first `count` of a vector's elements at p in the low lanes, `fill` above.
HWY_INLINE V LoadPart(const float* p, size_t count, float fill) {
  const D d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  for (size_t i = 0; i < hn::Lanes(d); ++i) buffer[i] = i < count ? p[i] : fill;
  return hn::Load(d, buffer);
#else
  const auto mask = hn::FirstN(d, count);
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, p), hn::Set(d, fill));
#endif
}

HWY_INLINE void StorePart(V v, float* p, size_t count) {
  const D d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, buffer);
  for (size_t i = 0; i < count; ++i) p[i] = buffer[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, p);
#endif
}

float Maximum(const float* row, Index n) {
  const D d;
  V best = hn::Set(d, -std::numeric_limits<float>::infinity());
  ForEach(
      n, [&](Index k) { best = hn::Max(best, hn::LoadU(d, row + k)); },
      [&](Index k, size_t count) {
        best = hn::Max(best, LoadPart(row + k, count, -std::numeric_limits<float>::infinity()));
      });
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

float LeastBelowZero(const float* row, Index n) {
  const D d;
  V least = hn::Zero(d);
  // NaN is below nothing.
  const auto step = [&](V value) HWY_ATTR { least = hn::IfThenElse(hn::Lt(value, least), value, least); };
  ForEach(
      n, [&](Index k) HWY_ATTR { step(hn::LoadU(d, row + k)); },
      [&](Index k, size_t count) HWY_ATTR { step(LoadPart(row + k, count, 0)); });
  return hn::GetLane(hn::MinOfLanes(d, least));
}

SoftmaxSums Exponentiate(float* row, Index n, float max) {
  const D d;
  const V shift = hn::Set(d, max);
  const V floor = hn::Set(d, -105.0f);  // its exponential is exactly 0; keeps 0 · −infinity out of the sums
  V rest = hn::Zero(d), slope = hn::Zero(d);
  const auto step = [&](V score) HWY_ATTR {
    const V x = hn::Max(hn::Sub(score, shift), floor);
    const V e = hn::Exp(d, x);
    rest = hn::Add(rest, e);
    slope = hn::MulAdd(e, x, slope);
    return e;
  };
  ForEach(
      n, [&](Index k) HWY_ATTR { hn::StoreU(step(hn::LoadU(d, row + k)), d, row + k); },
      [&](Index k, size_t count) HWY_ATTR {
        StorePart(step(LoadPart(row + k, count, -std::numeric_limits<float>::infinity())), row + k, count);
      });
  SoftmaxSums sums;
  sums.max = max;
  sums.rest = hn::GetLane(hn::SumOfLanes(d, rest));
  sums.slope = hn::GetLane(hn::SumOfLanes(d, slope));
  return sums;
}

void Scale(float* row, Index n, float factor) {
  const D d;
  const V f = hn::Set(d, factor);
  ForEach(
      n, [&](Index k) HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, row + k), f), d, row + k); },
      [&](Index k, size_t count) HWY_ATTR { StorePart(hn::Mul(LoadPart(row + k, count, 0.0f), f), row + k, count); });
}

void ScaleAndAdd(float* HWY_RESTRICT row, Index n, float factor, float* HWY_RESTRICT column,
                 float* HWY_RESTRICT diagonal) {
  const D d;
  const V f = hn::Set(d, factor);
  ForEach(
      n,
      [&](Index k) HWY_ATTR {
        const V w = hn::Mul(hn::LoadU(d, row + k), f);
        hn::StoreU(w, d, row + k);
        hn::StoreU(hn::Add(hn::LoadU(d, column + k), w), d, column + k);
        hn::StoreU(hn::Add(hn::LoadU(d, diagonal + k), w), d, diagonal + k);
      },
      [&](Index k, size_t count) HWY_ATTR {
        const V w = hn::Mul(LoadPart(row + k, count, 0.0f), f);
        StorePart(w, row + k, count);
        StorePart(hn::Add(LoadPart(column + k, count, 0.0f), w), column + k, count);
        StorePart(hn::Add(LoadPart(diagonal + k, count, 0.0f), w), diagonal + k, count);
      });
}

void WeightsOfScores(const float* scores, Index n, double log_sum_exp, float* out) {
  const D d;
  // In two floats: where a weight counts, the score lies near `high`, and the difference has no rounding at all.
  const auto high = static_cast<float>(log_sum_exp);
  const float low = std::isfinite(high) ? static_cast<float>(log_sum_exp - static_cast<double>(high)) : 0.0f;
  const V floor = hn::Set(d, -105.0f);  // its exponential is exactly 0
  const auto weight = [&](V score) HWY_ATTR {
    const V x = hn::Sub(hn::Sub(score, hn::Set(d, high)), hn::Set(d, low));
    const V e = hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, hn::Max(x, floor)));
    // A row whose every key is masked has log_sum_exp −∞ too: a masked cell must not become exp(−∞ + ∞).
    return hn::IfThenZeroElse(hn::Eq(score, hn::Set(d, -std::numeric_limits<float>::infinity())), e);
  };
  ForEach(
      n, [&](Index k) HWY_ATTR { hn::StoreU(weight(hn::LoadU(d, scores + k)), d, out + k); },
      [&](Index k, size_t count) HWY_ATTR { StorePart(weight(LoadPart(scores + k, count, 0.0f)), out + k, count); });
}

template <class Numbers>
HWY_INLINE Numbers FartherOf(Numbers a, Numbers b) {
  // As far as the farther one is the higher of them, if it is positive, else the lower.
  const Numbers far = hn::Max(hn::Abs(a), hn::Abs(b)), high = hn::Max(a, b);
  const Numbers found = hn::IfThenElse(hn::Eq(far, high), high, hn::Min(a, b));
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, found));
}

void Farther(float* HWY_RESTRICT peak, const float* HWY_RESTRICT row, Index n) {
  const D d;
  ForEach(
      n, [&](Index k) HWY_ATTR { hn::StoreU(FartherOf(hn::LoadU(d, peak + k), hn::LoadU(d, row + k)), d, peak + k); },
      [&](Index k, size_t count) HWY_ATTR {
        StorePart(FartherOf(LoadPart(peak + k, count, 0.0f), LoadPart(row + k, count, 0.0f)), peak + k, count);
      });
}

void Farthest(const float* HWY_RESTRICT row, Index n, Index bin, float* HWY_RESTRICT out) {
  const D d;
  const hn::RebindToSigned<D> whole;
  const hn::CappedTag<float, 1> one;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  // As many bins at once as there are lanes, their first numbers, their second, …
  const auto places = hn::Mul(hn::Iota(whole, 0), hn::Set(whole, static_cast<std::int32_t>(bin)));
  Index c = 0;
  for (; (c + lanes) * bin <= n; c += lanes) {
    V found = hn::GatherIndex(d, row + c * bin, places);
    for (Index j = 1; j < bin; ++j) found = FartherOf(found, hn::GatherIndex(d, row + c * bin + j, places));
    hn::StoreU(found, d, out + c);
  }
  for (; c * bin < n; ++c) {
    auto found = hn::LoadU(one, row + c * bin);
    for (Index k = c * bin + 1; k < HWY_MIN((c + 1) * bin, n); ++k) found = FartherOf(found, hn::LoadU(one, row + k));
    hn::StoreU(found, one, out + c);
  }
}

Index FindFirst(const float* row, Index n, float value) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const V wanted = hn::Set(d, value);
  Index k = 0;
  for (; k + lanes <= n; k += lanes) {
    const intptr_t lane = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, row + k), wanted));
    if (lane >= 0) return k + static_cast<Index>(lane);
  }
  for (; k < n; ++k)
    if (row[k] == value) return k;
  return -1;
}

EntropySums Entropy(const float* row, Index n) {
  const D d;
  V mass = hn::Zero(d), plogp = hn::Zero(d);
  const V tiny = hn::Set(d, std::numeric_limits<float>::min());
  const auto step = [&](V w) HWY_ATTR {
    mass = hn::Add(mass, w);
    plogp = hn::MulAdd(w, hn::Log(d, hn::Max(w, tiny)), plogp);
  };
  ForEach(
      n, [&](Index k) HWY_ATTR { step(hn::LoadU(d, row + k)); },
      [&](Index k, size_t count) HWY_ATTR { step(LoadPart(row + k, count, 0.0f)); });
  EntropySums sums;
  sums.mass = hn::GetLane(hn::SumOfLanes(d, mass));
  sums.plogp = hn::GetLane(hn::SumOfLanes(d, plogp));
  return sums;
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::row_kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::row_kernels {

HWY_EXPORT(Maximum);
HWY_EXPORT(LeastBelowZero);
HWY_EXPORT(Exponentiate);
HWY_EXPORT(Scale);
HWY_EXPORT(ScaleAndAdd);
HWY_EXPORT(Farther);
HWY_EXPORT(Farthest);
HWY_EXPORT(WeightsOfScores);
HWY_EXPORT(Entropy);
HWY_EXPORT(FindFirst);

float maximum(const float* row, Index n) {
  return HWY_DYNAMIC_DISPATCH(Maximum)(row, n);
}

float least_below_zero(const float* row, Index n) {
  return HWY_DYNAMIC_DISPATCH(LeastBelowZero)(row, n);
}

SoftmaxSums exponentiate(float* row, Index n, float max) {
  // The first element apart, so that the sums without it suffer no cancellation when it holds nearly all the weight.
  SoftmaxSums sums = HWY_DYNAMIC_DISPATCH(Exponentiate)(row + 1, n - 1, max);
  row[0] = std::exp(row[0] - max);
  return sums;
}

Index find_first(const float* row, Index n, float value) {
  return HWY_DYNAMIC_DISPATCH(FindFirst)(row, n, value);
}

void scale(float* row, Index n, float factor) {
  HWY_DYNAMIC_DISPATCH(Scale)(row, n, factor);
}

void scale_and_add(float* row, Index n, float factor, float* column, float* diagonal) {
  HWY_DYNAMIC_DISPATCH(ScaleAndAdd)(row, n, factor, column, diagonal);
}

void farther(float* peak, const float* row, Index n) {
  HWY_DYNAMIC_DISPATCH(Farther)(peak, row, n);
}

void farthest(const float* row, Index n, Index bin, float* out) {
  HWY_DYNAMIC_DISPATCH(Farthest)(row, n, bin, out);
}

void weights_of_scores(const float* scores, Index n, double log_sum_exp, float* out) {
  HWY_DYNAMIC_DISPATCH(WeightsOfScores)(scores, n, log_sum_exp, out);
}

EntropySums entropy_sums(const float* row, Index n) {
  return HWY_DYNAMIC_DISPATCH(Entropy)(row + 1, n - 1);
}

}  // namespace headscope::row_kernels
#endif
