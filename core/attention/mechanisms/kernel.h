#pragma once
// Attention whose similarity is an inner product of features, φ(q)·φ(k) (Katharopoulos et al., Transformers are RNNs,
// 2020). Because the product can be bracketed the other way round, φ(Q)(φ(K)ᵀV), its cost grows with n and not n², and
// under a causal mask it is a recurrent network with the state S_t = Σ φ(k) vᵀ. Every mechanism that only differs in φ
// goes through here. Under a mask that is neither causal nor full only the n × m form is right, and is used.

#include <string>

#include "core/attention/mechanism.h"
#include "core/base/words.h"

namespace headscope::mechanism {

/// A denominator nearer to 0 than this has no sign worth trusting: its row counts as empty and becomes zero.
inline constexpr double smallest_sum = 1e-30;

struct Kernel {
  Tensor query;         ///< φ(Q) (n, r)
  Tensor key;           ///< φ(K) (m, r)
  std::string formula;  ///< "φ(x) = 1 + elu(x)"
  enum class Norm {
    sum,   ///< ÷ Σ_j φ(q)·φ(k_j)
    none,  ///< as it comes out
    rms,   ///< each output row ÷ its root mean square (TransNormer; Qin et al. 2022)
  } norm = Norm::sum;
};

/// Weights and output by the n × m form, with steps that also show φ(K)ᵀV where the mask allows it.
MechanismResult kernel_attention(const MechanismInput& in, const Kernel& kernel, Detail detail);
/// Output alone: linear in n where the rule is causal or full.
Tensor kernel_output(const MechanismInput& in, const Kernel& kernel);
/// S_t and z_t token by token. REQUIRES a causal rule.
Recurrence kernel_recurrence(const MechanismInput& in, const Kernel& kernel);
/// With r features: 2 n r d_v multiply-adds, a state of r (d_v + 1) floats, no cache.
MechanismCost kernel_cost(const MechanismShape& s, Index r, double map_multiply_adds = 0);
std::vector<ShapeChip> kernel_chips(const MechanismShape& s, Index r, Kernel::Norm norm);

/// A mechanism of the group "Low rank & kernel" whose φ comes from `features`. Fills run, output and recurrent.
template <Kernel (*features)(const MechanismInput&, const MechanismValues&)>
void use_kernel(Mechanism& m) {
  m.run = [](const MechanismInput& in, const MechanismValues& v, Detail detail) {
    return kernel_attention(in, features(in, v), detail);
  };
  m.output = [](const MechanismInput& in, const MechanismValues& v) { return kernel_output(in, features(in, v)); };
  m.recurrent = [](const MechanismInput& in, const MechanismValues& v) {
    return kernel_recurrence(in, features(in, v));
  };
  m.group = to_say("Low rank & kernel");
}

inline MechanismParameter norm_parameter(int usual = 0) {
  return choice_parameter(
      "normalise", to_say("Normalise"),
      to_say("Divide by the sum of similarities, not at all, or each output row by its root mean square."),
      {to_say("sum"), to_say("none"), to_say("rms")}, usual);
}
inline Kernel::Norm norm_of(const MechanismValues& values) {
  return static_cast<Kernel::Norm>(values.whole("normalise"));
}

}  // namespace headscope::mechanism
