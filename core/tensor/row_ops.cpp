#include "core/tensor/row_ops.h"

#include <algorithm>
#include <cmath>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/tensor/row_ops.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target, or Highway's maths would be compiled for one instruction set only.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::row_ops {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// out[i] = f(x[i]…) over n elements; the rest that fills no vector goes through a padded one.
template <class F, class... In>
HWY_INLINE void Map(F f, Index n, float* out, const In*... in) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  Index i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, in + i)...), d, out + i);
  if (i == n) return;
  const auto part = [&](const float* p) HWY_ATTR {
    HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)] = {};
    for (Index k = 0; k < n - i; ++k) buffer[k] = p[i + k];
    return hn::Load(d, buffer);
  };
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(f(part(in)...), d, buffer);
  for (Index k = 0; k < n - i; ++k) out[i + k] = buffer[k];
}

/// Σ f(x[i]); f(0) need not be 0, so the last elements are added one by one.
template <class F>
HWY_INLINE float Sum(F f, const float* x, Index n) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V a = hn::Zero(d), b = hn::Zero(d);
  Index i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, f(hn::LoadU(d, x + i)));
    b = hn::Add(b, f(hn::LoadU(d, x + i + lanes)));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, f(hn::LoadU(d, x + i)));
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  for (; i < n; ++i) sum += hn::GetLane(f(hn::Set(d, x[i])));
  return sum;
}

void Add(const float* a, const float* b, Index n, float* out) {
  Map([](V x, V y) HWY_ATTR { return hn::Add(x, y); }, n, out, a, b);
}

void Multiply(const float* a, const float* b, Index n, float* out) {
  Map([](V x, V y) HWY_ATTR { return hn::Mul(x, y); }, n, out, a, b);
}

void LayerNorm(const float* x, const float* gain, const float* bias, Index n, float epsilon, float* out) {
  const D d;
  const float mean = Sum([](V v) HWY_ATTR { return v; }, x, n) / static_cast<float>(n);
  const V center = hn::Set(d, mean);
  const auto square = [&](V v) HWY_ATTR {
    const V c = hn::Sub(v, center);
    return hn::Mul(c, c);
  };
  const float variance = Sum(square, x, n) / static_cast<float>(n);
  const V scale = hn::Set(d, 1.0f / std::sqrt(variance + epsilon));
  Map([&](V v, V g, V b) HWY_ATTR { return hn::MulAdd(hn::Mul(hn::Sub(v, center), scale), g, b); }, n, out, x, gain,
      bias);
}

void RmsNorm(const float* x, const float* gain, Index n, float epsilon, float* out) {
  const D d;
  const float mean_square = Sum([](V v) HWY_ATTR { return hn::Mul(v, v); }, x, n) / static_cast<float>(n);
  const V scale = hn::Set(d, 1.0f / std::sqrt(mean_square + epsilon));
  Map([&](V v, V g) HWY_ATTR { return hn::Mul(hn::Mul(v, scale), g); }, n, out, x, gain);
}

void Relu(const float* x, Index n, float* out) {
  const V zero = hn::Zero(D());
  Map([&](V v) HWY_ATTR { return hn::Max(v, zero); }, n, out, x);
}

/// x · σ(s(x)) for a Map: both silu and gelu_tanh have this form, since ½ (1 + tanh u) = σ(2u).
template <class S>
HWY_INLINE void Gated(S s, const float* x, Index n, float* out) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  // Exp is defined up to 104 and finite up to 88.7; beyond, it may return anything, and σ is below 1e-38 anyway.
  const V top = hn::Set(d, 88.0f);
  Map([&](V v) HWY_ATTR { return hn::Div(v, hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(s(v)), top)))); }, n, out, x);
}

void GeluTanh(const float* x, Index n, float* out) {
  const D d;
  const V linear = hn::Set(d, 1.5957691216057308f);  // 2 √(2/π)
  const V cubic = hn::Set(d, 0.07135481627158893f);  // 2 √(2/π) · 0.044715
  Gated([&](V v) HWY_ATTR { return hn::Mul(v, hn::MulAdd(hn::Mul(v, v), cubic, linear)); }, x, n, out);
}

void Silu(const float* x, Index n, float* out) {
  Gated([](V v) HWY_ATTR { return v; }, x, n, out);
}

void Rotate(const float* x, const float* cosine, const float* sine, Index half, float* out) {
  const float* const y = x + half;
  Map([](V a, V b, V c, V s) HWY_ATTR { return hn::Sub(hn::Mul(a, c), hn::Mul(b, s)); }, half, out, x, y, cosine, sine);
  Map([](V a, V b, V c, V s) HWY_ATTR { return hn::MulAdd(b, c, hn::Mul(a, s)); }, half, out + half, x, y, cosine,
      sine);
}

bool Finite(const float* x, Index n) {
  // x − x is 0 for a finite number and NaN for every other.
  return Sum([](V v) HWY_ATTR { return hn::Sub(v, v); }, x, n) == 0.0f;
}

double LogSumExp(const float* x, Index n) {
  const D floats;
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  // Without registers both are 1, and no two doubles fill the place of their floats.
  const Index lanes = static_cast<Index>(hn::Lanes(d)), together = static_cast<Index>(hn::Lanes(floats));
  V best = hn::Set(floats, x[0]);
  Index i = 0;
  for (; i + together <= n; i += together) best = hn::Max(best, hn::LoadU(floats, x + i));
  double most = hn::GetLane(hn::MaxOfLanes(floats, best));
  for (; i < n; ++i) most = std::max(most, static_cast<double>(x[i]));
  if (std::isinf(most)) return most;
  const auto shift = hn::Set(d, most);
  const auto of = [&](const float* p)
                      HWY_ATTR { return hn::Exp(d, hn::Sub(hn::PromoteTo(d, hn::LoadU(half, p)), shift)); };
  auto a = hn::Zero(d), b = hn::Zero(d);
  for (i = 0; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, of(x + i));
    b = hn::Add(b, of(x + i + lanes));
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  for (; i < n; ++i) sum += std::exp(static_cast<double>(x[i]) - most);
  return most + std::log(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::row_ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::row_ops {

HWY_EXPORT(Add);
HWY_EXPORT(Multiply);
HWY_EXPORT(LayerNorm);
HWY_EXPORT(RmsNorm);
HWY_EXPORT(Relu);
HWY_EXPORT(GeluTanh);
HWY_EXPORT(Silu);
HWY_EXPORT(Rotate);
HWY_EXPORT(Finite);
HWY_EXPORT(LogSumExp);

void add(const float* a, const float* b, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(Add)(a, b, n, out);
}
void multiply(const float* a, const float* b, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(Multiply)(a, b, n, out);
}
void layer_norm(const float* x, const float* gain, const float* bias, Index n, float epsilon, float* out) {
  HWY_DYNAMIC_DISPATCH(LayerNorm)(x, gain, bias, n, epsilon, out);
}
void rms_norm(const float* x, const float* gain, Index n, float epsilon, float* out) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(x, gain, n, epsilon, out);
}
void relu(const float* x, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(Relu)(x, n, out);
}
void gelu(const float* x, Index n, float* out) {
  for (Index i = 0; i < n; ++i) out[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678118654752f));
}
void gelu_tanh(const float* x, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(GeluTanh)(x, n, out);
}
void silu(const float* x, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(Silu)(x, n, out);
}
void rotate(const float* x, const float* cosine, const float* sine, Index half, float* out) {
  HWY_DYNAMIC_DISPATCH(Rotate)(x, cosine, sine, half, out);
}
bool finite(const float* x, Index n) {
  return HWY_DYNAMIC_DISPATCH(Finite)(x, n);
}
double log_sum_exp(const float* x, Index n) {
  return HWY_DYNAMIC_DISPATCH(LogSumExp)(x, n);
}

}  // namespace headscope::row_ops
#endif
