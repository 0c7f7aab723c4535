#pragma once
// The singular value decomposition of a weight matrix, W = U diag(σ) Vᵀ, in the form that scaling its values needs: one
// side's directions. With u_i the left ones, σ_i u_i v_iᵀ = u_i u_iᵀ W, so W′ = U diag(z σ) Vᵀ = U diag(z) Uᵀ W; the
// same with V from the right. The shorter side is decomposed (Eckart & Young, The approximation of one matrix by
// another of lower rank, 1936; Sun, Cetin & Tang, Transformer²: Self-adaptive LLMs, 2025).

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct SingularDirections {
  std::vector<double> values;  ///< σ, largest first: as many as the shorter side
  Tensor directions;           ///< (shorter side, value): a column each, of length 1
  bool of_rows = true;         ///< the directions are u_i, of W's rows' space; else v_i
};

/// w (in, out), any strides; computed in double. Directions that share a value are any basis of what they span.
SingularDirections singular_directions(const Tensor& w);

/// U diag(z σ) Vᵀ. REQUIRES directions of this w, and a z for each value. Exactly w where every z is 1, exactly 0 where
/// every z is 0.
Tensor scaled_singular(const Tensor& w, const SingularDirections& of, std::span<const double> z);

/// The same of one matrix again and again, as learning its z asks for it: u_iᵀ W is computed once and kept, in double.
class SingularParts {
 public:
  explicit SingularParts(const Tensor& w);  ///< REQUIRES that w stays as it is
  std::size_t count() const { return of_.values.size(); }
  /// scaled_singular(w, …, z).
  Tensor scaled(std::span<const double> z) const;
  /// ∂L/∂z of every part, where `gradient` is ∂L/∂W′.
  std::vector<double> slopes(const Tensor& gradient) const;

 private:
  struct Shares;
  Tensor w_;
  SingularDirections of_;
  std::shared_ptr<const Shares> shares_;
};

}  // namespace headscope
