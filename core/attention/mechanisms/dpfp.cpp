// Deterministic parameter-free projection, DPFP-ν (Schlag, Irie & Schmidhuber, Linear Transformers Are Secretly Fast
// Weight Programmers, 2021, § 5.3): with r = relu([x, −x]) of 2d entries,
//   φ_{i + 2d (s − 1)}(x) = r_i · r_{i + s},  s = 1 … ν, indices around the end.
// 2dν features, none negative, nothing drawn; each is non-zero only where two entries of r are, so that different
// directions meet little: more keys fit into the state before they overlap. Shapes: φ(Q) (n, 2dν), φ(K)ᵀV (2dν, d_v).
// Cost: 2 n · 2dν · d_v multiply-adds and n · 2dν for φ; state 2dν (d_v + 1) floats.

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

Tensor dpfp_projected(const Tensor& x, Index shifts) {
  const Index d = x.dim(1), wide = 2 * d;
  Tensor out = Tensor::zeros({x.dim(0), wide * shifts});
  for (Index t = 0; t < x.dim(0); ++t) {
    const auto r = [&](Index i) {
      const Index at = i % wide;
      return std::max(at < d ? x.at(t, at) : -x.at(t, at - d), 0.0f);
    };
    for (Index s = 1; s <= shifts; ++s)
      for (Index i = 0; i < wide; ++i) out.ref(t, i + wide * (s - 1)) = r(i) * r(i + s);
  }
  return out;
}

/// Shifts by the whole of r would multiply entries with themselves again.
Index shifts_of(Index d, const MechanismValues& values) {
  return std::min(values.whole("nu"), 2 * d - 1);
}

Kernel dpfp_features(const MechanismInput& in, const MechanismValues& values) {
  const float root = std::sqrt(std::abs(in.scale));
  const Index shifts = shifts_of(in.d(), values);
  return {dpfp_projected(times(in.q, root), shifts), dpfp_projected(times(in.k, root), shifts),
          "φ(x) = rᵢ · rᵢ₊ₛ, r = relu([x, −x])", norm_of(values)};
}

}  // namespace

Mechanism make_dpfp() {
  Mechanism m;
  m.id = "dpfp";
  m.title = to_say("DPFP: deterministic features that rarely meet");
  m.name = to_say("DPFP");
  m.source = "Schlag et al. 2021";
  m.formula = "φ(x) = rᵢ · rᵢ₊ₛ,  r = relu([x, −x]),  s = 1 … ν";
  m.meaning = to_say(
      "Products of neighbouring entries of [x, −x], cut at 0: 2dν features without a random number. Most are 0, so "
      "keys of different directions hardly overlap and a state can hold more of them.");
  m.keywords = "deterministic parameter-free projection fast weight programmers capacity Schmidhuber";
  m.parameters = {whole_parameter("nu", to_say("Shifts ν"), to_say("2dν features."), 1, 16, 3), norm_parameter()};
  use_kernel<dpfp_features>(m);
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    const Index r = 2 * s.d * shifts_of(s.d, v);
    return kernel_cost(s, r, 2 * static_cast<double>(s.n) * static_cast<double>(r));
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    return kernel_chips(s, 2 * s.d * shifts_of(s.d, v), norm_of(v));
  };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult&) -> std::string {
    const Tensor phi = dpfp_projected(in.k, shifts_of(in.d(), v));
    const auto zero = std::ranges::count(phi.values(), 0.0f);
    return say("Of the keys' features {} % are 0. More shifts: more features, and a larger state.",
               text(100.0 * static_cast<double>(zero) / static_cast<double>(phi.size())));
  };
  return m;
}

}  // namespace headscope::mechanism
