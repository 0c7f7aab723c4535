#pragma once
// Eigen's decompositions, compiled once: each takes a compiler longer than most files of the project. Private to core.

#include <Eigen/Core>

namespace headscope {

/// m = U diag(σ) Vᵀ, thin: as many values as the shorter side, largest first.
struct SingularValues {
  Eigen::MatrixXd u;
  Eigen::VectorXd sigma;
  Eigen::MatrixXd v;
};
SingularValues singular_value_decomposition(const Eigen::MatrixXd& m);
/// σ alone.
Eigen::VectorXd singular_values_of(const Eigen::MatrixXd& m);

/// m = Q diag(λ) Qᵀ of a symmetric m; λ rises.
struct SymmetricEigen {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;  ///< a column each
};
SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& m);

/// λ of any square m, in no order.
Eigen::VectorXcd eigenvalues(const Eigen::MatrixXd& m);

}  // namespace headscope
