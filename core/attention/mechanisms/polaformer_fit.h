#pragma once
// PolaFormer's powers and coefficients learnt for one head (Meng et al. 2025 learn them with the network): a power for
// each channel, p_c = 1 + 4 σ(w_c), and one coefficient for each polarity, by gradient descent on
//   ‖O − O_softmax‖² ÷ ‖O_softmax‖²,
// O and O_softmax (n, d_v) from the head's own q, k, v. The gradient goes through S(i, j) = Σ_c |q_ic|^p_c |k_jc|^p_c:
//   ∂L/∂S_ij = g (G_i·v_j − G_i·o_i) ÷ Σ_j S_ij,  ∂S_ij/∂p_c = |q_ic|^p_c |k_jc|^p_c (ln |q_ic| + ln |k_jc|).
// Cost: 4 n m d multiply-adds a step. It looks at the whole text, later tokens too.

#include <vector>

#include "core/attention/mechanism.h"

namespace headscope::mechanism {

inline constexpr Index most_fitted_tokens = 64;  ///< the fit sees the first ones
inline constexpr int fit_steps = 80;

struct PolarFit {
  std::vector<double> powers;  ///< of each channel
  double same = 1, opposite = 1;
  std::vector<double> losses;  ///< before the first step, and after each
};

/// Of the first tokens of `in`, from every power 3 and both coefficients 1: the best of all steps. Asked again for the
/// same numbers it is not computed again.
PolarFit fit_polar(const MechanismInput& in);
/// The loss of some powers and coefficients against `target`, O_softmax, and its gradient for the powers, then for both
/// coefficients.
double polar_loss(const MechanismInput& in, const Tensor& target, const std::vector<double>& powers, double same,
                  double opposite, std::vector<double>* gradient = nullptr);

}  // namespace headscope::mechanism
