#pragma once
// What linear attention layers put behind their state in place of a denominator: a norm of each row, and an output gate
// that follows from the token (Qin et al., TransNormerLLM, 2023; Yang et al., Gated Linear Attention, 2024, § 4.4).
// In the papers the gate is learnt, σ(x W) or swish(x W) of the layer's input x. A head has neither: its query stands
// for the token, W (d, d_v) is drawn, entries N(0, 1).

#include "core/attention/mechanism.h"

namespace headscope::mechanism {

enum class GateCurve { sigmoid, swish };

/// (n, d_v); undefined where the parameter "output-gate" is off.
Tensor output_gate(const MechanismInput& in, const MechanismValues& values, GateCurve curve);
MechanismParameter output_gate_parameter();

/// x ⊙ gate, or x itself where there is no gate.
Tensor gated(const Tensor& x, const Tensor& gate);
/// Σ of the squares of each row.
std::vector<double> row_squares(const Tensor& x);
/// 1 ÷ √(squares ÷ width + 1e−6), by row.
std::vector<float> rms_factors(const std::vector<double>& squares, Index width);
/// Each row ÷ √(mean of its squares + 1e−6), and the factors it was multiplied by.
Tensor rms_rows(const Tensor& x, std::vector<float>* factors = nullptr);
/// Each row less its mean.
Tensor centred(const Tensor& x);
/// Each row times its factor.
Tensor scaled_rows(const Tensor& x, const std::vector<float>& factors);

/// "gate" with the formula of its curve.
MechanismStep gate_step(const Tensor& gate, GateCurve curve);

}  // namespace headscope::mechanism
