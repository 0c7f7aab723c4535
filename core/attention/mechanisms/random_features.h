#pragma once
// Directions for random features, and what the two estimators of exp(q·k) share.

#include "core/attention/mechanism.h"

namespace headscope::mechanism {

/// (features, d) rows ~ N(0, I). Orthogonal: blocks of d rows at right angles to one another (Gram-Schmidt), each with
/// the length of an independent Gaussian (Yu et al., Orthogonal Random Features, 2016).
Tensor directions(Index features, Index d, bool orthogonal, std::uint64_t seed);
/// The parameters of both: features, orthogonal, seed.
std::vector<MechanismParameter> random_feature_parameters();
/// Mean over the visible cells of |w − w_softmax| for features 4, 8, … 1024, as two curves: of this input, and of
/// queries and keys of the same shape drawn from N(0, 1). Each is the mean over seeds seed, seed + 1, …, `curve_seeds`
/// of them, in a band from the least to the most. The marker is of the seed itself. All of the first `curve_tokens`
/// tokens, and the title then says so: 144 runs stand behind the curve.
inline constexpr std::uint64_t curve_seeds = 8;
inline constexpr Index curve_tokens = 96;
MechanismCurve error_curve(const MechanismInput& in, const MechanismValues& values, const Mechanism& mechanism);

}  // namespace headscope::mechanism
