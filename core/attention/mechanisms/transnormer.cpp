// TransNormer's NormAttention (Qin et al., The Devil in Linear Transformer, 2022): linear attention without the
// denominator, whose gradient is unbounded, and a norm of each output row in its place: O = RMSNorm(φ(Q)(φ(K)ᵀV)).
// The paper's lower layers keep local softmax attention ("DiagAttention"); in the model that is a mask.
// Shapes and cost as linear attention; state d d_v floats.

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

Kernel transnormer_features(const MechanismInput& in, const MechanismValues& values) {
  const bool norm = values.on("norm");
  return {each(in.q, one_plus_elu), each(in.k, one_plus_elu), said("φ(x) = 1 + elu(x)"),
          norm ? Kernel::Norm::rms : Kernel::Norm::none};
}

}  // namespace

Mechanism make_transnormer() {
  Mechanism m;
  m.id = "transnormer";
  m.title = to_say("TransNormer: no denominator, normalised after");
  m.name = to_say("TransNormer");
  m.source = "Qin et al. 2022";
  m.formula = "O = RMSNorm(φ(Q) (φ(K)ᵀ V))";
  m.meaning = to_say(
      "The denominator of linear attention has gradients without bound; leaving it out and normalising each output row "
      "trains stably. The paper pairs it with local attention in the low layers.");
  m.keywords = "NormAttention DiagAttention normalisation denominator unbounded gradients";
  m.parameters = {
      toggle_parameter("norm", to_say("Normalise after"), to_say("Off: outputs grow with the number of keys."), true)};
  use_kernel<transnormer_features>(m);
  m.cost = [](const MechanismShape& s, const MechanismValues&) { return kernel_cost(s, s.d); };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    return kernel_chips(s, s.d, v.on("norm") ? Kernel::Norm::rms : Kernel::Norm::none);
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) -> std::string {
    return v.on("norm")
               ? said(
                     "Weights need not sum to 1: each row is scaled so that its output has root mean square 1, however "
                     "large the values are. A model trained with softmax expects other sizes.")
               : said("Nothing divides: the sum of a row, and with it the output, grows with every key.");
  };
  return m;
}

}  // namespace headscope::mechanism
