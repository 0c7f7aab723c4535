#include "core/tensor/row_gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/tensor/row_gradients.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target, or Highway's maths would be compiled for one instruction set only.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::row_gradients {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V LoadPart(const float* p, Index count) {
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)] = {};
  for (Index i = 0; i < count; ++i) buffer[i] = p[i];
  return hn::Load(D(), buffer);
}

HWY_INLINE void StorePart(V v, Index count, float* p) {
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, D(), buffer);
  for (Index i = 0; i < count; ++i) p[i] = buffer[i];
}

/// to[i] = f(in[i]…), or that added to to[i].
template <class F, class... In>
HWY_INLINE void Map(F f, Index n, bool add, float* to, const In*... in) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  Index i = 0;
  if (add) {
    for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, to + i), f(hn::LoadU(d, in + i)...)), d, to + i);
    if (i < n) StorePart(hn::Add(LoadPart(to + i, n - i), f(LoadPart(in + i, n - i)...)), n - i, to + i);
  } else {
    for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, in + i)...), d, to + i);
    if (i < n) StorePart(f(LoadPart(in + i, n - i)...), n - i, to + i);
  }
}

/// Σ f(in[i]…) for an f that is 0 where all its arguments are.
template <class F, class... In>
HWY_INLINE float Sum(F f, Index n, const In*... in) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V a = hn::Zero(d), b = hn::Zero(d);
  Index i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, f(hn::LoadU(d, in + i)...));
    b = hn::Add(b, f(hn::LoadU(d, in + i + lanes)...));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, f(hn::LoadU(d, in + i)...));
  if (i < n) b = hn::Add(b, f(LoadPart(in + i, n - i)...));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

void Accumulate(const float* from, Index n, bool add, float* to) {
  Map([](V x) HWY_ATTR { return x; }, n, add, to, from);
}

void Multiply(const float* dy, const float* other, Index n, bool add, float* dx) {
  Map([](V g, V o) HWY_ATTR { return hn::Mul(g, o); }, n, add, dx, dy, other);
}

void Relu(const float* x, const float* dy, Index n, bool add, float* dx) {
  const V zero = hn::Zero(D());
  Map([&](V v, V g) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(v, zero), g); }, n, add, dx, x, dy);
}

/// Of x σ(s(x)): σ + x σ (1 − σ) s', where slope(x) = s'(x). See row_ops.cpp.
template <class S, class Slope>
HWY_INLINE void Gated(S s, Slope slope, const float* x, const float* dy, Index n, bool add, float* dx) {
  const D d;
  const V one = hn::Set(d, 1.0f), top = hn::Set(d, 88.0f);
  Map(
      [&](V v, V g) HWY_ATTR {
        const V sigma = hn::Div(one, hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(s(v)), top))));
        const V rise = hn::Mul(hn::Mul(v, slope(v)), hn::Sub(one, sigma));
        return hn::Mul(g, hn::Mul(sigma, hn::Add(one, rise)));
      },
      n, add, dx, x, dy);
}

void GeluTanh(const float* x, const float* dy, Index n, bool add, float* dx) {
  const D d;
  const V linear = hn::Set(d, 1.5957691216057308f);  // as in row_ops.cpp
  const V cubic = hn::Set(d, 0.07135481627158893f), cubic3 = hn::Set(d, 3 * 0.07135481627158893f);
  Gated([&](V v) HWY_ATTR { return hn::Mul(v, hn::MulAdd(hn::Mul(v, v), cubic, linear)); },
        [&](V v) HWY_ATTR { return hn::MulAdd(hn::Mul(v, v), cubic3, linear); }, x, dy, n, add, dx);
}

void Silu(const float* x, const float* dy, Index n, bool add, float* dx) {
  const V one = hn::Set(D(), 1.0f);
  Gated([](V v) HWY_ATTR { return v; }, [&](V) HWY_ATTR { return one; }, x, dy, n, add, dx);
}

void Rotate(const float* dy, const float* cosine, const float* sine, Index half, bool add, float* dx) {
  const float* const high = dy + half;
  Map([](V a, V b, V c, V s) HWY_ATTR { return hn::MulAdd(a, c, hn::Mul(b, s)); }, half, add, dx, dy, high, cosine,
      sine);
  Map([](V a, V b, V c, V s) HWY_ATTR { return hn::Sub(hn::Mul(b, c), hn::Mul(a, s)); }, half, add, dx + half, dy, high,
      cosine, sine);
}

void Norm(bool center, const float* x, const float* gain, const float* dy, Index n, float epsilon, bool add, float* dx,
          float* d_gain, float* d_bias) {
  const D d;
  const auto count = static_cast<float>(n);
  const float mean = center ? Sum([](V v) HWY_ATTR { return v; }, n, x) / count : 0.0f;
  const V middle = hn::Set(d, mean);
  float squares = 0;
  {
    // Not Sum(): an element that is not there is 0, and 0 − mean is not.
    const Index lanes = static_cast<Index>(hn::Lanes(d));
    V total = hn::Zero(d);
    Index i = 0;
    for (; i + lanes <= n; i += lanes) {
      const V c = hn::Sub(hn::LoadU(d, x + i), middle);
      total = hn::MulAdd(c, c, total);
    }
    squares = hn::GetLane(hn::SumOfLanes(d, total));
    for (; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  }
  const float scale = 1.0f / std::sqrt(squares / count + epsilon);
  const V r = hn::Set(d, scale);
  if (dx) {
    const float level = center ? Sum([](V g, V w) HWY_ATTR { return hn::Mul(g, w); }, n, dy, gain) / count : 0.0f;
    const float slope =
        Sum([&](V v, V g, V w) HWY_ATTR { return hn::Mul(hn::Mul(hn::Sub(v, middle), r), hn::Mul(g, w)); }, n, x, dy,
            gain) /
        count;
    const V flat = hn::Set(d, level), tilt = hn::Set(d, slope);
    Map(
        [&](V v, V g, V w) HWY_ATTR {
          const V unit = hn::Mul(hn::Sub(v, middle), r);
          return hn::Mul(r, hn::NegMulAdd(unit, tilt, hn::Sub(hn::Mul(g, w), flat)));
        },
        n, add, dx, x, dy, gain);
  }
  Map([&](V v, V g) HWY_ATTR { return hn::Mul(hn::Mul(hn::Sub(v, middle), r), g); }, n, true, d_gain, x, dy);
  if (d_bias) Accumulate(dy, n, true, d_bias);
}

void Softmax(const float* p, Index n, float scale, float* dp) {
  const D d;
  const V mean = hn::Set(d, Sum([](V w, V g) HWY_ATTR { return hn::Mul(w, g); }, n, p, dp)), s = hn::Set(d, scale);
  Map([&](V w, V g) HWY_ATTR { return hn::Mul(hn::Mul(s, w), hn::Sub(g, mean)); }, n, false, dp, p, dp);
}

void Entropy(const float* p, Index n, float price, float* dp) {
  const D d;
  const float sum = Sum([](V w) HWY_ATTR { return w; }, n, p);
  if (!(sum > 1e-30f)) return;
  const V by = hn::Set(d, 1 / sum), least = hn::Set(d, 1e-37f);
  const auto log_of = [&](V w) HWY_ATTR {
    return hn::IfThenElseZero(hn::Gt(w, least), hn::Log(d, hn::Max(hn::Mul(w, by), least)));
  };
  const V entropy = hn::Set(d, -Sum([&](V w) HWY_ATTR { return hn::Mul(hn::Mul(w, by), log_of(w)); }, n, p));
  const V slope = hn::Set(d, -price / sum);
  Map([&](V w) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(w, least), hn::Mul(slope, hn::Add(log_of(w), entropy))); },
      n, true, dp, p);
}

double ScaledSoftmax(const float* x, Index n, float factor, float* p) {
  const D d;
  float max = -std::numeric_limits<float>::infinity();
  {
    const Index lanes = static_cast<Index>(hn::Lanes(d));
    V best = hn::Set(d, max);
    Index i = 0;
    for (; i + lanes <= n; i += lanes) best = hn::Max(best, hn::LoadU(d, x + i));
    max = hn::GetLane(hn::MaxOfLanes(d, best));
    for (; i < n; ++i) max = std::max(max, x[i]);
  }
  const V shift = hn::Set(d, max), floor = hn::Set(d, -105.0f);  // whose exponential is exactly 0
  Map([&](V v) HWY_ATTR { return hn::Exp(d, hn::Max(hn::Sub(v, shift), floor)); }, n, false, p, x);
  const double sum = Sum([](V v) HWY_ATTR { return v; }, n, p);
  const V scale = hn::Set(d, static_cast<float>(factor / sum));
  Map([&](V v) HWY_ATTR { return hn::Mul(v, scale); }, n, false, p, p);
  return static_cast<double>(max) + std::log(sum);
}

double SumOfSquares(const float* x, Index n) {
  double total = 0;
  for (Index i = 0; i < n; i += 4096)
    total += static_cast<double>(Sum([](V v) HWY_ATTR { return hn::Mul(v, v); }, std::min<Index>(4096, n - i), x + i));
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::row_gradients
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::row_gradients {

HWY_EXPORT(Accumulate);
HWY_EXPORT(Multiply);
HWY_EXPORT(Relu);
HWY_EXPORT(GeluTanh);
HWY_EXPORT(Silu);
HWY_EXPORT(Rotate);
HWY_EXPORT(Norm);
HWY_EXPORT(Softmax);
HWY_EXPORT(Entropy);
HWY_EXPORT(ScaledSoftmax);
HWY_EXPORT(SumOfSquares);

void accumulate(const float* from, Index n, bool add, float* to) {
  HWY_DYNAMIC_DISPATCH(Accumulate)(from, n, add, to);
}
void multiply(const float* dy, const float* other, Index n, bool add, float* dx) {
  HWY_DYNAMIC_DISPATCH(Multiply)(dy, other, n, add, dx);
}
void relu(const float* x, const float* dy, Index n, bool add, float* dx) {
  HWY_DYNAMIC_DISPATCH(Relu)(x, dy, n, add, dx);
}
void gelu(const float* x, const float* dy, Index n, bool add, float* dx) {
  for (Index i = 0; i < n; ++i) {  // Φ(x) + x φ(x)
    const float slope = 0.5f * (1.0f + std::erf(x[i] * 0.70710678118654752f)) +
                        x[i] * 0.39894228040143268f * std::exp(-0.5f * x[i] * x[i]);
    dx[i] = dy[i] * slope + (add ? dx[i] : 0.0f);
  }
}
void gelu_tanh(const float* x, const float* dy, Index n, bool add, float* dx) {
  HWY_DYNAMIC_DISPATCH(GeluTanh)(x, dy, n, add, dx);
}
void silu(const float* x, const float* dy, Index n, bool add, float* dx) {
  HWY_DYNAMIC_DISPATCH(Silu)(x, dy, n, add, dx);
}
void rotate(const float* dy, const float* cosine, const float* sine, Index half, bool add, float* dx) {
  HWY_DYNAMIC_DISPATCH(Rotate)(dy, cosine, sine, half, add, dx);
}
void norm(bool center, const float* x, const float* gain, const float* dy, Index n, float epsilon, bool add, float* dx,
          float* d_gain, float* d_bias) {
  HWY_DYNAMIC_DISPATCH(Norm)(center, x, gain, dy, n, epsilon, add, dx, d_gain, d_bias);
}
void softmax(const float* p, Index n, float scale, float* dp) {
  HWY_DYNAMIC_DISPATCH(Softmax)(p, n, scale, dp);
}
void entropy(const float* p, Index n, float price, float* dp) {
  HWY_DYNAMIC_DISPATCH(Entropy)(p, n, price, dp);
}
double scaled_softmax(const float* x, Index n, float factor, float* p) {
  return HWY_DYNAMIC_DISPATCH(ScaledSoftmax)(x, n, factor, p);
}
double sum_of_squares(const float* x, Index n) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquares)(x, n);
}

}  // namespace headscope::row_gradients
#endif
