// What a head writes goes through its gate, where a model has one: readings of it, against sums written out.

#include <doctest/doctest.h>

#include <cmath>

#include "core/analysis/circuits.h"
#include "core/analysis/composition.h"
#include "core/analysis/logit_attribution.h"
#include "core/analysis/sinks.h"
#include "core/analysis/weighted_maps.h"
#include "core/base/error.h"
#include "core/model/family.h"
#include "core/model/formats/model_files.h"
#include "tests/analysis/subjects.h"

namespace headscope::output_gate_test {

using testing::ReadSubject;
using testing::reference;

namespace {
/// AFMoE's weights without norms behind attention and MLP, so that what heads write adds up, and without those of
/// queries and keys.
struct GatedSubject : ReadSubject {
  GatedSubject() : ReadSubject("families/afmoe") {
    ModelConfig config = model().config();
    const ModelFiles files = ModelFiles::open(locate_model(reference("families/afmoe")));
    const RawWeights raw = read_weights(*files.weights, config);
    config.norm_place = NormPlace::before;
    config.qk_norm = QkNorm::none;
    loaded.model = Model::build(config, raw, "gated", backend);
    request.capture.sites.clear();
    for (const SiteKind kind : loaded.model->sites()) request.capture.sites.insert(kind);
    trace = run(loaded, request, ctx());
    weights = loaded.model->weights();
  }
};

double opened(const ReadSubject& s, int layer, Index query, Index head, Index i) {
  return 1 / (1 + std::exp(-static_cast<double>(s.site(SiteKind::attn_gate, layer).at(query, head, i))));
}
}  // namespace

TEST_CASE("the gate is a product of what the layer reads, and z times its sigmoid is what the output matrix reads") {
  const GatedSubject s;
  for (int layer = 0; layer < s.dims().layers; ++layer) {
    const BlockWeights& block = s.weights.blocks[static_cast<std::size_t>(layer)];
    for (Index query = 0; query < 8; ++query) {
      const auto gate = testing::times(testing::row(s.site(SiteKind::ln1_normalized, layer), query), block.z_gate);
      for (Index head = 0; head < s.dims().heads; ++head)
        for (Index i = 0; i < s.dims().d_head; ++i) {
          const double own = gate[static_cast<std::size_t>(head * s.dims().d_head + i)];
          CHECK(s.site(SiteKind::attn_gate, layer).at(query, head, i) == doctest::Approx(own).epsilon(1e-4).scale(0.1));
          CHECK(
              s.site(SiteKind::z_gated, layer).at(query, head, i) ==
              doctest::Approx(static_cast<double>(s.site(SiteKind::z, layer).at(query, head, i)) / (1 + std::exp(-own)))
                  .epsilon(1e-4)
                  .scale(0.1));
        }
    }
  }
}

TEST_CASE("direct logit attribution of gated heads adds up to the logit, and over the positions they read from") {
  const GatedSubject s;
  const LogitAttribution found = logit_attribution(s.model(), *s.trace, {.position = 5, .token = 11});
  CHECK(found.sum() == doctest::Approx(found.logit).epsilon(1e-4).scale(0.1));
  CHECK(found.value(AttributionPart::Kind::remainder) == 0);
  for (int layer = 0; layer < s.dims().layers; ++layer)
    for (int head = 0; head < s.dims().heads; ++head) {
      double sum = 0;
      for (Index key = 0; key < 8; ++key)
        sum += static_cast<double>(found.by_source.at(Index{layer} * s.dims().heads + head, key));
      CHECK(sum == doctest::Approx(found.value(AttributionPart::Kind::head, layer, head)).epsilon(1e-4).scale(0.1));
    }
}

TEST_CASE("what a key carries to a query goes through that query's gate") {
  const GatedSubject s;
  const int layer = 1, head = 4;
  const AttentionMap& map = s.trace->map({layer, head});
  const Tensor& o = s.weights.blocks[layer].heads[head].o;
  const AttentionMap output = weighted_map(*s.trace, s.weights, {layer, head}, Weighting::output);
  std::vector<double> norms(8, 0.0);
  double carried = 0;
  for (Index i = 0; i < 8; ++i) {
    double first = 0, all = 0;
    for (Index j = 0; j <= i; ++j) {
      std::vector<double> value;
      for (Index d = 0; d < s.dims().d_head; ++d)
        value.push_back(static_cast<double>(s.site(SiteKind::v, layer).at(j, map.place().kv_head, d)) *
                        opened(s, layer, i, head, d));
      double square = 0;
      for (const double x : testing::times(value, o)) square += x * x;
      const double weighed = static_cast<double>(map.weight(i, j)) * std::sqrt(square);
      CHECK(output.weight(i, j) == doctest::Approx(weighed).epsilon(1e-4).scale(0.01));
      CHECK(offered_norm(*s.trace, s.weights, {layer, head}, Weighting::output, i, j) ==
            doctest::Approx(std::sqrt(square)).epsilon(1e-4));
      norms[static_cast<std::size_t>(j)] += std::sqrt(square) / static_cast<double>(8 - j);
      all += weighed;
      if (j == 0) first = weighed;
    }
    if (i > 0) carried += first / all / 7;
  }
  const std::vector<float> found = key_norms(*s.trace, s.weights, {layer, head}, Weighting::output);
  for (std::size_t j = 0; j < 8; ++j) CHECK(found[j] == doctest::Approx(norms[j]).epsilon(1e-4));
  CHECK(formula(Weighting::output, BehindHeads::gate) == "‖α (v ∘ σ(g)) W_O‖");
  CHECK(formula(Weighting::value, BehindHeads::gate) == "α ‖v‖");
  CHECK(weighting_sites(s.model().config()) == std::set<SiteKind>{SiteKind::v, SiteKind::attn_gate});
  const SinkReport sinks = read_sinks(*s.trace, s.weights, 4);
  CHECK(sinks.heads[static_cast<std::size_t>(layer * s.dims().heads + head)].carried ==
        doctest::Approx(carried).epsilon(1e-4));
}

TEST_CASE("no single matrix says what a gated head writes") {
  GatedSubject s;
  const std::vector<std::int32_t> tokens{5, 9};
  CHECK_THROWS_WITH_AS(token_circuits(s.model(), s.backend, {{0, 0}, 0}, tokens), doctest::Contains("gate"), Error);
  CHECK_THROWS_WITH_AS(head_composition(s.model(), s.ctx(), 4, 1), doctest::Contains("gate"), Error);
}

}  // namespace headscope::output_gate_test
