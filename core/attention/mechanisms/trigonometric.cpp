// Trigonometric random features (Rahimi & Recht, Random Features for Large-Scale Kernel Machines, 2007; Peng et al.,
// Random Feature Attention, 2021):
//   φ(x) = exp(‖x‖²/2) / √r [sin(W x), cos(W x)],  rows of W ~ N(0, I),
// also unbiased for exp(q·k), but with both signs: where exp(q·k) is near zero the estimate is a small difference of
// large numbers, weights come out negative and a row's sum may vanish (Choromanski et al. 2021, Lemma 2).
// The factor exp(‖q‖²/2) cancels in the normalisation; of exp(‖k‖²/2) the largest is taken off.
// Shapes: φ (n, 2r). Cost: twice that of Performer with r features.

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/attention/mechanisms/random_features.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

Tensor waves(const Tensor& x, const Tensor& w, bool lengths) {
  const Tensor turned = product_t(x, w);
  const Index r = w.dim(0);
  Tensor out = Tensor::zeros({x.dim(0), 2 * r});
  std::vector<double> half(static_cast<std::size_t>(x.dim(0)), 0.0);
  for (Index i = 0; i < x.dim(0); ++i)
    for (Index c = 0; c < x.dim(1); ++c)
      nth(half, i) += static_cast<double>(x.at(i, c)) * static_cast<double>(x.at(i, c)) / 2;
  const double max = half.empty() ? 0 : *std::ranges::max_element(half);
  for (Index i = 0; i < x.dim(0); ++i) {
    const double factor = (lengths ? std::exp(nth(half, i) - max) : 1) / std::sqrt(static_cast<double>(r));
    for (Index c = 0; c < r; ++c) {
      out.ref(i, c) = static_cast<float>(factor * std::sin(static_cast<double>(turned.at(i, c))));
      out.ref(i, r + c) = static_cast<float>(factor * std::cos(static_cast<double>(turned.at(i, c))));
    }
  }
  return out;
}

Kernel trigonometric_features(const MechanismInput& in, const MechanismValues& values) {
  const float root = std::sqrt(std::abs(in.scale));
  const Tensor w = directions(values.whole("features"), in.d(), values.on("orthogonal"), values.seed());
  return {waves(times(in.q, root), w, false), waves(times(in.k, root), w, true),
          "φ(x) = exp(‖x‖²/2) (sin, cos)(W x) ÷ √r", Kernel::Norm::sum};
}

MechanismResult run_trigonometric(const MechanismInput& in, const MechanismValues& values, Detail detail);

}  // namespace

Mechanism make_trigonometric() {
  Mechanism m;
  m.id = "trigonometric";
  m.title = to_say("Trigonometric random features");
  m.name = to_say("Trigonometric features");
  m.source = "Rahimi & Recht 2007; Peng et al. 2021";
  m.formula = "φ(x) = exp(‖x‖²/2) [sin(W x), cos(W x)] ÷ √r";
  m.meaning = to_say(
      "Sines and cosines of random projections also multiply to exp(q·k) on average. But they take both signs: small "
      "weights drown in noise, and a row's sum can pass through 0.");
  m.keywords = "random fourier features RFA sine cosine";
  m.parameters = random_feature_parameters();
  use_kernel<trigonometric_features>(m);
  m.run = run_trigonometric;
  m.score_edits = ScoreEdits::scaled;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    return kernel_cost(s, 2 * v.whole("features"),
                       2 * static_cast<double>(s.n) * v.number("features") * static_cast<double>(s.d));
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    return kernel_chips(s, 2 * v.whole("features"), Kernel::Norm::sum);
  };
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return r.facts.empty()
               ? std::string(said("No similarity is negative here: scores are small enough for these features."))
               : say("{} of the similarities are negative, which exp never is: where the true weight is near 0 the "
                     "estimate is noise.",
                     r.facts[0].value);
  };
  return m;
}

namespace {
MechanismResult run_trigonometric(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  MechanismResult result = kernel_attention(in, trigonometric_features(in, values), detail);
  if (detail == Detail::steps) result.curves.push_back(error_curve(in, values, make_trigonometric()));
  return result;
}
}  // namespace

}  // namespace headscope::mechanism
