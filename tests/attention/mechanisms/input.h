#pragma once
// Small inputs for tests of mechanisms, and definitions in double that owe nothing to the code under test.

#include <cmath>
#include <string>
#include <vector>

#include "core/attention/masks.h"
#include "core/attention/mechanism.h"
#include "tests/support/largest_difference.h"
#include "tests/support/random_tensor.h"
#include "tests/support/worst.h"

namespace headscope::testing {

using Matrix = std::vector<std::vector<double>>;

inline Matrix matrix_of(const Tensor& x) {
  Matrix out(static_cast<std::size_t>(x.dim(0)));
  for (Index i = 0; i < x.dim(0); ++i)
    for (Index j = 0; j < x.dim(1); ++j) out[static_cast<std::size_t>(i)].push_back(static_cast<double>(x.at(i, j)));
  return out;
}
inline Tensor rows(Index n, Index d, std::vector<float> values) {
  return Tensor::from({n, d}, values);
}
inline MechanismInput random_head(Index n, Index m, Index d, Index d_v, const std::string& mask,
                                  std::uint64_t seed = 1) {
  return {random_tensor({n, d}, seed), random_tensor({m, d}, seed + 1), random_tensor({m, d_v}, seed + 2),
          static_cast<float>(1 / std::sqrt(static_cast<double>(d))), parse_mask(mask)};
}
inline MechanismResult run(const std::string& spec, const MechanismInput& in, Detail detail = Detail::weights) {
  const MechanismChoice choice = parse_mechanism(spec);
  return choice.mechanism->run(in, choice.values, detail);
}
inline const MechanismStep& step_of(const MechanismResult& result, const std::string& id) {
  for (const MechanismStep& step : result.steps)
    if (step.id == id) return step;
  throw std::runtime_error("no step " + id);
}
/// Largest difference of two cells, NaN where there is one; both have one shape.
inline double gap(const Tensor& a, const Tensor& b) {
  return largest_difference(a, b);
}
inline double gap(const Tensor& a, const Matrix& b) {
  REQUIRE(a.shape().rank() == 2);
  REQUIRE(a.dim(0) == static_cast<Index>(b.size()));
  Worst most;
  for (Index i = 0; i < a.dim(0); ++i) {
    const std::vector<double>& row = b[static_cast<std::size_t>(i)];
    REQUIRE(a.dim(1) == static_cast<Index>(row.size()));
    for (Index j = 0; j < a.dim(1); ++j)
      most.add(std::abs(static_cast<double>(a.at(i, j)) - row[static_cast<std::size_t>(j)]));
  }
  return most.value();
}
/// The number that a fact's text begins with.
inline double number_in(const std::string& text) {
  return std::stod(text);
}
inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}
inline Matrix times(const Matrix& a, const Matrix& b) {
  Matrix out(a.size(), std::vector<double>(b[0].size(), 0.0));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[0].size(); ++j) out[i][j] += a[i][k] * b[k][j];
  return out;
}
/// weight(i, j) = similarity(i, j) of visible cells, each row divided by its sum.
template <class Similarity>
Matrix normalised(const MechanismInput& in, Similarity similarity) {
  Matrix out(static_cast<std::size_t>(in.n()), std::vector<double>(static_cast<std::size_t>(in.m()), 0.0));
  for (Index i = 0; i < in.n(); ++i) {
    double sum = 0;
    for (Index j = 0; j < in.m(); ++j)
      if (!masked(*in.rule, i, j, in.m()))
        sum += out[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = similarity(i, j);
    for (double& w : out[static_cast<std::size_t>(i)]) w = sum != 0 ? w / sum : 0;
  }
  return out;
}
inline Matrix softmax_by_definition(const MechanismInput& in) {
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k);
  return normalised(in, [&](Index i, Index j) {
    return std::exp(static_cast<double>(in.scale) *
                    dot(q[static_cast<std::size_t>(i)], k[static_cast<std::size_t>(j)]));
  });
}

}  // namespace headscope::testing
