// cosFormer (Qin et al., cosFormer: Rethinking Softmax in Attention, 2022): ReLU features re-weighted by the cosine of
// the distance, ReLU(q_i)·ReLU(k_j) cos(π (i − j) / 2M), which factors because cos(a − b) = cos a cos b + sin a sin b:
// φ(x_i) = [ReLU(x) cos(π i / 2M), ReLU(x) sin(π i / 2M)]. M is the longest text; near keys count more than far ones.
// Shapes: φ (n, 2d). Cost: twice that of linear attention.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

Tensor turned(const Tensor& x, double longest) {
  Tensor out = Tensor::zeros({x.dim(0), 2 * x.dim(1)});
  for (Index i = 0; i < x.dim(0); ++i) {
    const double angle = std::numbers::pi * static_cast<double>(i) / (2 * longest);
    for (Index c = 0; c < x.dim(1); ++c) {
      const float positive = std::max(x.at(i, c), 0.0f);
      out.ref(i, c) = positive * static_cast<float>(std::cos(angle));
      out.ref(i, x.dim(1) + c) = positive * static_cast<float>(std::sin(angle));
    }
  }
  return out;
}

Kernel cosformer_features(const MechanismInput& in, const MechanismValues& values) {
  const double longest = std::max(values.number("longest"), static_cast<double>(std::max(in.n(), in.m())));
  return {turned(in.q, longest), turned(in.k, longest), "ReLU(x) · (cos, sin)(π i ÷ 2M)", norm_of(values)};
}

}  // namespace

Mechanism make_cosformer() {
  Mechanism m;
  m.id = "cosformer";
  m.title = to_say("cosFormer: ReLU features weighted by cos of the distance");
  m.name = to_say("Cosine (cosFormer)");
  m.source = "Qin et al. 2022";
  m.formula = "φ(q)·φ(k) = ReLU(q)·ReLU(k) cos(π (i − j) ÷ 2M)";
  m.meaning = to_say(
      "A cosine of the distance makes near keys count more than far ones, and still factors into one part of the query "
      "and one of the key.");
  m.keywords = "reweighting cosine linear";
  m.parameters = {
      whole_parameter("longest", to_say("Longest text M"),
                      to_say("At this distance the weight has fallen to 0; at least n."), 1, 131072, 64, true),
      norm_parameter()};
  use_kernel<cosformer_features>(m);
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return kernel_cost(s, 2 * s.d); };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) { return kernel_chips(s, 2 * s.d, norm_of(v)); };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult&) -> std::string {
    const double longest = std::max(v.number("longest"), static_cast<double>(std::max(in.n(), in.m())));
    return say("The farthest pair of this text is weighted by {}, a neighbour by {}.",
               text(std::cos(std::numbers::pi * static_cast<double>(in.m() - 1) / (2 * longest))),
               text(std::cos(std::numbers::pi / (2 * longest))));
  };
  return m;
}

}  // namespace headscope::mechanism
