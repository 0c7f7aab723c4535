// What heads write goes through a norm of what all of them put out, where a model has one (BitNet): readings of it,
// against sums written out.

#include <doctest/doctest.h>

#include <cmath>

#include "core/analysis/circuits.h"
#include "core/analysis/composition.h"
#include "core/analysis/logit_attribution.h"
#include "core/analysis/weighted_maps.h"
#include "core/base/error.h"
#include "tests/analysis/subjects.h"

namespace headscope::z_norm_test {

using testing::ReadSubject;

namespace {
/// 1 ÷ √(mean z² + ε) over all heads of a row.
double shrunk(const ReadSubject& s, int layer, Index query) {
  const Tensor& z = s.site(SiteKind::z, layer);
  double square = 0;
  for (Index head = 0; head < z.dim(1); ++head)
    for (Index i = 0; i < z.dim(2); ++i) square += std::pow(static_cast<double>(z.at(query, head, i)), 2);
  return 1 / std::sqrt(square / static_cast<double>(z.dim(1) * z.dim(2)) + 0.01);
}

double gain(const ReadSubject& s, int layer, Index head, Index i) {
  return static_cast<double>(
      s.weights.blocks[static_cast<std::size_t>(layer)].z_norm.gain.at(head * s.dims().d_head + i));
}
}  // namespace

TEST_CASE("what the output matrix reads is z of all heads through one norm, with its gains") {
  const ReadSubject s("families/bitnet");
  for (int layer = 0; layer < s.dims().layers; ++layer)
    for (Index query = 0; query < 8; ++query)
      for (Index head = 0; head < s.dims().heads; ++head)
        for (Index i = 0; i < s.dims().d_head; ++i)
          CHECK(s.site(SiteKind::z_gated, layer).at(query, head, i) ==
                doctest::Approx(static_cast<double>(s.site(SiteKind::z, layer).at(query, head, i)) *
                                gain(s, layer, head, i) * shrunk(s, layer, query))
                    .epsilon(1e-4)
                    .scale(0.1));
}

TEST_CASE("what a key carries to a query goes through the norm of that query's row") {
  const ReadSubject s("families/bitnet");
  const int layer = 1, head = 3;
  const AttentionMap& map = s.trace->map({layer, head});
  const Tensor& o = s.weights.blocks[layer].heads[head].o;
  const AttentionMap output = weighted_map(*s.trace, s.weights, {layer, head}, Weighting::output);
  for (Index i = 0; i < 8; ++i)
    for (Index j = 0; j <= i; ++j) {
      std::vector<double> value;
      for (Index d = 0; d < s.dims().d_head; ++d)
        value.push_back(static_cast<double>(s.site(SiteKind::v, layer).at(j, map.place().kv_head, d)) *
                        gain(s, layer, head, d) * shrunk(s, layer, i));
      double square = 0;
      for (const double x : testing::times(value, o)) square += x * x;
      CHECK(offered_norm(*s.trace, s.weights, {layer, head}, Weighting::output, i, j) ==
            doctest::Approx(std::sqrt(square)).epsilon(1e-4));
      CHECK(output.weight(i, j) ==
            doctest::Approx(static_cast<double>(map.weight(i, j)) * std::sqrt(square)).epsilon(1e-4).scale(0.01));
    }
  CHECK(formula(Weighting::output, behind_heads(s.model().config())) == "‖α (v ∘ γ) W_O‖ ÷ rms(z)");
  CHECK(formula(Weighting::value, behind_heads(s.model().config())) == "α ‖v‖");
  CHECK(weighting_sites(s.model().config()) == std::set<SiteKind>{SiteKind::v, SiteKind::z, SiteKind::z_gated});
}

TEST_CASE(
    "no single matrix says what a head writes that goes through a norm with the others, and no shares by source") {
  ReadSubject s("families/bitnet");
  const std::vector<std::int32_t> tokens{5, 9};
  CHECK_THROWS_WITH_AS(token_circuits(s.model(), s.backend, {{0, 0}, 0}, tokens), doctest::Contains("a norm of what"),
                       Error);
  CHECK_THROWS_WITH_AS(head_composition(s.model(), s.ctx(), 4, 1), doctest::Contains("a norm of what"), Error);
  const LogitAttribution found = logit_attribution(s.model(), *s.trace, {.position = 5, .token = 11});
  CHECK(found.sum() == doctest::Approx(found.logit).epsilon(1e-4).scale(0.1));
  CHECK(std::isnan(found.by_source.at(0, 0)));
}

}  // namespace headscope::z_norm_test
