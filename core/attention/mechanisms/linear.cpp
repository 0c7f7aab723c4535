// Linear attention (Katharopoulos, Vyas, Pappas & Fleuret, Transformers are RNNs: Fast Autoregressive Transformers with
// Linear Attention, 2020): φ(x) = 1 + elu(x), that is x + 1 for x > 0 and eˣ below, always positive. "identity" leaves
// φ out, which shows the bare change of brackets: (Q Kᵀ) V = Q (Kᵀ V). Shapes: φ(Q) (n, d), φ(K)ᵀV (d, d_v). Cost: 2 n
// d d_v multiply-adds; state d (d_v + 1) floats, whatever n is.

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

Kernel linear_features(const MechanismInput& in, const MechanismValues& values) {
  // q and k share the scale, so that φ(q)·φ(k) is about what the score was.
  const float root = std::sqrt(std::abs(in.scale));
  const bool identity = values.whole("map") == 1;
  const auto phi = [identity, root](float x) { return identity ? root * x : one_plus_elu(x); };
  return {each(in.q, phi), each(in.k, phi), identity ? "φ(x) = x ÷ d^¼" : said("φ(x) = 1 + elu(x)"), norm_of(values)};
}

std::string linear_note(const MechanismInput&, const MechanismValues& values, const MechanismResult&) {
  if (values.whole("map") == 1)
    return said(
        "Without φ the weights take both signs, and a row's sum may come close to 0: that is what φ > 0 is for.");
  return said("φ is positive but not an exponential: nothing pushes small similarities towards zero.");
}

}  // namespace

Mechanism make_linear() {
  Mechanism m;
  m.id = "linear";
  m.title = to_say("Linear attention, φ(x) = 1 + elu(x)");
  m.name = to_say("Linear, 1+elu");
  m.source = "Katharopoulos et al. 2020";
  m.formula = "O = φ(Q) (φ(K)ᵀ V) ÷ φ(Q) Σφ(k)";
  m.meaning = to_say(
      "A product of features in place of exp(q·k): the brackets move, and all keys and values are summed up once in a "
      "d × d matrix that each query reads from.");
  m.keywords = "transformers are RNNs associativity kernel elu trick feature map linear transformer linear attention";
  m.parameters = {
      choice_parameter("map", to_say("Feature map φ"), to_say("1 + elu, or none: (QKᵀ)V = Q(KᵀV) laid bare."),
                       {to_say("elu"), to_say("identity")}),
      norm_parameter()};
  use_kernel<linear_features>(m);
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return kernel_cost(s, s.d); };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) { return kernel_chips(s, s.d, norm_of(v)); };
  m.note = linear_note;
  return m;
}

}  // namespace headscope::mechanism
