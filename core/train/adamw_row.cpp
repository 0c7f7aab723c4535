#include "core/train/adamw_row.h"

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/train/adamw_row.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void Row(const AdamWRow& step, const float* gradient, Index n, float* first, float* second, float* weight) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const V scale = hn::Set(d, step.gradient_scale), beta1 = hn::Set(d, step.beta1), beta2 = hn::Set(d, step.beta2),
          rest1 = hn::Set(d, step.rest1), rest2 = hn::Set(d, step.rest2), rate = hn::Set(d, step.rate),
          second_scale = hn::Set(d, step.second_scale), epsilon = hn::Set(d, step.epsilon),
          keep = hn::Set(d, step.keep);
  const auto update = [&](const float* g_at, float* m_at, float* v_at, float* w_at) HWY_ATTR {
    const V g = hn::Mul(scale, hn::LoadU(d, g_at));
    const V m = hn::MulAdd(rest1, g, hn::Mul(beta1, hn::LoadU(d, m_at)));
    const V v = hn::MulAdd(rest2, hn::Mul(g, g), hn::Mul(beta2, hn::LoadU(d, v_at)));
    hn::StoreU(m, d, m_at);
    hn::StoreU(v, d, v_at);
    const V change = hn::Div(hn::Mul(rate, m), hn::Add(hn::Sqrt(hn::Mul(second_scale, v)), epsilon));
    hn::StoreU(hn::Sub(hn::Mul(keep, hn::LoadU(d, w_at)), change), d, w_at);
  };
  Index i = 0;
  for (; i + lanes <= n; i += lanes) update(gradient + i, first + i, second + i, weight + i);
  if (i == n) return;
  // Through padded buffers, so that an element's result does not depend on where a tensor is cut.
  HWY_ALIGN float part[4][HWY_MAX_BYTES / sizeof(float)] = {};
  for (Index k = i; k < n; ++k) {
    part[0][k - i] = gradient[k];
    part[1][k - i] = first[k];
    part[2][k - i] = second[k];
    part[3][k - i] = weight[k];
  }
  update(part[0], part[1], part[2], part[3]);
  for (Index k = i; k < n; ++k) {
    first[k] = part[1][k - i];
    second[k] = part[2][k - i];
    weight[k] = part[3][k - i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope {

HWY_EXPORT(Row);

void adamw_row(const AdamWRow& step, const float* gradient, Index n, float* first, float* second, float* weight) {
  HWY_DYNAMIC_DISPATCH(Row)(step, gradient, n, first, second, weight);
}

}  // namespace headscope
#endif
