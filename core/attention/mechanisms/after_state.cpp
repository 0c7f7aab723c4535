#include "core/attention/mechanisms/after_state.h"

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

Tensor output_gate(const MechanismInput& in, const MechanismValues& values, GateCurve curve) {
  if (values.whole("output-gate") == 1) return {};
  const Tensor w = gaussian(in.d(), in.d_v(), values.seed() + 2);
  const auto unit = static_cast<float>(1 / std::sqrt(static_cast<double>(in.d())));
  return each(times(product(in.q, w), unit), [curve](float x) {
    const float open = 1 / (1 + std::exp(-x));
    return curve == GateCurve::swish ? x * open : open;
  });
}

MechanismParameter output_gate_parameter() {
  return choice_parameter(
      "output-gate", to_say("Output gate"),
      to_say("Each output times a gate of the token. Learnt in the paper; here drawn, on the query, or off."),
      {to_say("drawn"), to_say("off")});
}

Tensor gated(const Tensor& x, const Tensor& gate) {
  if (!gate.defined()) return x;
  Tensor out = x.copy();
  for (std::size_t c = 0; c < out.values().size(); ++c) out.mutable_values()[c] *= gate.values()[c];
  return out;
}

std::vector<double> row_squares(const Tensor& x) {
  std::vector<double> squares;
  for (Index i = 0; i < x.dim(0); ++i) {
    double sum = 0;
    for (Index c = 0; c < x.dim(1); ++c) sum += static_cast<double>(x.at(i, c)) * static_cast<double>(x.at(i, c));
    squares.push_back(sum);
  }
  return squares;
}

std::vector<float> rms_factors(const std::vector<double>& squares, Index width) {
  std::vector<float> factors;
  for (const double each : squares)
    factors.push_back(static_cast<float>(1 / std::sqrt(each / static_cast<double>(width) + 1e-6)));
  return factors;
}

Tensor rms_rows(const Tensor& x, std::vector<float>* factors) {
  const std::vector<float> own = rms_factors(row_squares(x), x.dim(1));
  if (factors) *factors = own;
  return scaled_rows(x, own);
}

Tensor centred(const Tensor& x) {
  Tensor out = x.copy();
  for (Index i = 0; i < x.dim(0); ++i) {
    double sum = 0;
    for (Index c = 0; c < x.dim(1); ++c) sum += static_cast<double>(x.at(i, c));
    const auto mean = static_cast<float>(sum / static_cast<double>(x.dim(1)));
    for (Index c = 0; c < x.dim(1); ++c) out.ref(i, c) -= mean;
  }
  return out;
}

Tensor scaled_rows(const Tensor& x, const std::vector<float>& factors) {
  Tensor out = x.copy();
  for (Index i = 0; i < x.dim(0); ++i)
    for (Index c = 0; c < x.dim(1); ++c) out.ref(i, c) *= nth(factors, i);
  return out;
}

MechanismStep gate_step(const Tensor& gate, GateCurve curve) {
  return {.id = "output-gate",
          .title = said("Output gate"),
          .formula = curve == GateCurve::swish ? said("swish(q W ÷ √d), W drawn") : said("σ(q W ÷ √d), W drawn"),
          .value = gate,
          .range = curve == GateCurve::swish ? MechanismStep::Range::signed_values : MechanismStep::Range::probability,
          .columns = MechanismAxis::dimension};
}

}  // namespace headscope::mechanism
