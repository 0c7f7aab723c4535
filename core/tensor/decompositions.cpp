#include "core/tensor/decompositions.h"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>

namespace headscope {

namespace {
Eigen::BDCSVD<Eigen::MatrixXd> decomposed(const Eigen::MatrixXd& m, unsigned options) {
  return Eigen::BDCSVD<Eigen::MatrixXd>(m, options);
}
}  // namespace

SingularValues singular_value_decomposition(const Eigen::MatrixXd& m) {
  const auto svd = decomposed(m, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {svd.matrixU(), svd.singularValues(), svd.matrixV()};
}

Eigen::VectorXd singular_values_of(const Eigen::MatrixXd& m) {
  return decomposed(m, 0).singularValues();
}

SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& m) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(m);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXcd eigenvalues(const Eigen::MatrixXd& m) {
  return Eigen::EigenSolver<Eigen::MatrixXd>(m, false).eigenvalues();
}

}  // namespace headscope
