#include "core/analysis/composition.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/analysis/subjects.h"

namespace headscope::composition_test {

using testing::ReadSubject;

namespace {
using Square = std::vector<std::vector<double>>;

Square product(const Square& a, const Square& b) {
  Square out(a.size(), std::vector<double>(b[0].size(), 0));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[0].size(); ++j) out[i][j] += a[i][k] * b[k][j];
  return out;
}
Square transposed(const Square& a) {
  Square out(a[0].size(), std::vector<double>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[0].size(); ++j) out[j][i] = a[i][j];
  return out;
}
double norm(const Square& a) {
  double sum = 0;
  for (const auto& r : a)
    for (const double x : r) sum += x * x;
  return std::sqrt(sum);
}
Square rows_of(const Tensor& t) {
  Square out;
  for (Index i = 0; i < t.dim(0); ++i) out.push_back(testing::row(t, i));
  return out;
}
/// What a matrix reads through a norm, by a d_model × d_model matrix in front of it.
Square through_norm(const ReadSubject& s, int layer, const Tensor& w) {
  const auto d = static_cast<std::size_t>(s.dims().d_model);
  Square front(d, std::vector<double>(d, 0));
  const bool centred = s.model().config().norm == NormKind::layer_norm;
  const Tensor& gain = s.weights.blocks[static_cast<std::size_t>(layer)].ln1.gain;
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < d; ++j)
      front[i][j] = ((i == j) - (centred ? 1.0 / static_cast<double>(d) : 0)) *
                    static_cast<double>(gain.at(static_cast<Index>(j)));
  return product(front, rows_of(w));
}
}  // namespace

TEST_CASE("composition scores are those of the whole d_model × d_model matrices") {
  for (const char* folder : {"gpt2-untied-erf", "llama-gqa"}) {
    CAPTURE(folder);
    ReadSubject s(folder, {1, 2, 3});
    const Composition c = head_composition(s.model(), s.ctx());
    const int heads = s.dims().heads;
    REQUIRE(c.heads.size() == static_cast<std::size_t>(heads * s.dims().layers));
    const auto weights = [&](int layer, int head) -> const HeadWeights& {
      return s.weights.blocks[static_cast<std::size_t>(layer)].heads[static_cast<std::size_t>(head)];
    };
    for (int a = 0; a < heads; ++a)
      for (int b = 0; b < heads; ++b) {
        const HeadWeights &first = weights(0, a), &second = weights(1, b);
        const Square ov_a = product(through_norm(s, 0, first.v), rows_of(first.o)),
                     ov_b = product(through_norm(s, 1, second.v), rows_of(second.o)),
                     qk_b = product(through_norm(s, 1, second.q), transposed(through_norm(s, 1, second.k)));
        const Index row = a, column = heads + b;
        CHECK(c.q.at(row, column) == doctest::Approx(norm(product(ov_a, qk_b)) / norm(ov_a) / norm(qk_b)));
        CHECK(c.k.at(row, column) == doctest::Approx(norm(product(ov_a, transposed(qk_b))) / norm(ov_a) / norm(qk_b)));
        CHECK(c.v.at(row, column) == doctest::Approx(norm(product(ov_a, ov_b)) / norm(ov_a) / norm(ov_b)));
        CHECK(std::isnan(c.q.at(row, b)));       // the same layer
        CHECK(std::isnan(c.v.at(column, row)));  // an earlier one
      }
  }
}

TEST_CASE("chance of composition: random matrices of these shapes, reproducible") {
  ReadSubject s("gpt2-random", {1, 2, 3});
  const Composition one = head_composition(s.model(), s.ctx(), 64, 7),
                    two = head_composition(s.model(), s.ctx(), 64, 7);
  CHECK(one.chance.mean == two.chance.mean);
  CHECK(one.chance.mean != head_composition(s.model(), s.ctx(), 64, 8).chance.mean);
  // Directions of random matrices meet at random: a share 1/d of the squared norm is left.
  CHECK(one.chance.mean == doctest::Approx(1 / std::sqrt(32.0)).epsilon(0.1));
  CHECK(one.chance.deviation > 0);
  CHECK(one.chance.deviation < 0.05);
}

}  // namespace headscope::composition_test
