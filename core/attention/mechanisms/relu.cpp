// Linear attention with φ(x) = max(x, 0), as in SANA (Xie et al., SANA: Efficient High-Resolution Image Synthesis with
// Linear Diffusion Transformers, 2024). Pairs that agree in a negative dimension are lost.
// Shapes and cost as linear attention.

#include <algorithm>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

Kernel relu_features(const MechanismInput& in, const MechanismValues& values) {
  const auto phi = [](float x) { return std::max(x, 0.0f); };
  return {each(in.q, phi), each(in.k, phi), "φ(x) = max(x, 0)", norm_of(values)};
}

double share_lost(const Tensor& x) {
  double lost = 0, all = 0;
  for (const float value : x.values()) {
    const double square = static_cast<double>(value) * static_cast<double>(value);
    all += square;
    if (value < 0) lost += square;
  }
  return all > 0 ? 100 * lost / all : 0;
}

}  // namespace

Mechanism make_relu() {
  Mechanism m;
  m.id = "relu";
  m.title = to_say("Linear attention, φ(x) = ReLU(x)");
  m.name = to_say("Linear, ReLU (SANA)");
  m.source = "Xie et al. 2024 (SANA)";
  m.formula = "O = ReLU(Q) (ReLU(K)ᵀ V) ÷ ReLU(Q) ΣReLU(k)";
  m.meaning = to_say(
      "The cheapest positive feature map. Negative parts of queries and keys are thrown away, and with them every "
      "agreement between two negative numbers.");
  m.keywords = "SANA relu linear attention diffusion";
  m.parameters = {norm_parameter()};
  use_kernel<relu_features>(m);
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return kernel_cost(s, s.d); };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) { return kernel_chips(s, s.d, norm_of(v)); };
  m.note = [](const MechanismInput& in, const MechanismValues&, const MechanismResult&) {
    return say("Negative parts are lost: {} % of the squares of Q and {} % of those of K.", text(share_lost(in.q)),
               text(share_lost(in.k)));
  };
  return m;
}

}  // namespace headscope::mechanism
