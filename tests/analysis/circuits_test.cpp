#include "core/analysis/circuits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/model/family.h"
#include "tests/analysis/subjects.h"

namespace headscope::circuits_test {

using testing::ReadSubject;

namespace {
/// Learned positions taken away: layer 0 then sees tokens alone, as a circuit does.
class NoPositions final : public Tap {
 public:
  bool wants(Site site) const override { return site.kind == SiteKind::pos_embed; }
  Tensor at(Site, const Tensor& value) override { return Tensor::zeros(value.shape()); }
};

/// Two tokens, ± four directions: embeddings of unit length that add up to 0, tied. W_V = diag(values), W_O = I.
std::shared_ptr<const Model> four_directions(const Tensor& values, Backend& backend) {
  ModelConfig c;
  c.name = "four directions";
  c.family = "llama";
  c.dims = {.layers = 1, .heads = 1, .kv_heads = 1, .d_head = 4, .d_model = 4, .d_mlp = 0, .vocab = 8};
  c.context = 8;
  c.norm = NormKind::rms_norm;
  c.position = PositionKind::rotary;
  RawWeights raw;
  raw.token_embedding = Tensor::zeros({8, 4});
  for (Index i = 0; i < 4; ++i) raw.token_embedding.ref(2 * i, i) = 1, raw.token_embedding.ref(2 * i + 1, i) = -1;
  raw.unembedding = raw.token_embedding.transpose(0, 1);
  Tensor identity = Tensor::zeros({4, 4});
  for (Index i = 0; i < 4; ++i) identity.ref(i, i) = 1;
  const Tensor ones = Tensor::full({4}, 1);
  raw.final_gain = ones;
  RawLayer& layer = raw.layers.emplace_back();
  layer.ln1_gain = ones;
  layer.q_weight = layer.k_weight = layer.o_weight = identity;
  layer.v_weight = values;
  return Model::build(c, raw, "test", backend);
}

Tensor diagonal(float a, float b, float c, float d) {
  Tensor t = Tensor::zeros({4, 4});
  t.ref(0, 0) = a, t.ref(1, 1) = b, t.ref(2, 2) = c, t.ref(3, 3) = d;
  return t;
}
}  // namespace

TEST_CASE("the QK circuit is what the first layer scores when it sees tokens alone") {
  // With a norm behind the rotation, or queries that grow, scores depend on where the key stands: at 0.
  for (const char* folder : {"gpt2-random", "gpt2-untied-erf", "llama-gqa", "llama-bias", "families/hunyuan_v1_dense",
                             "families/ministral3"}) {
    CAPTURE(folder);
    ReadSubject s(folder);
    NoPositions blind;
    const bool rotary = s.model().config().position == PositionKind::rotary;
    const auto bare = run(s.loaded, s.request, Ctx{.backend = s.backend, .tap = rotary ? nullptr : &blind});
    const Tensor& scores = bare->sites.at({SiteKind::attn_scores, 0});
    for (int head = 0; head < s.dims().heads; ++head)
      for (const auto& [query, key] : {std::pair<Index, Index>{1, 0}, {6, 3}, {7, 6}, {4, 4}, {6, 0}}) {
        if (key > 0 && rotary && !s.model().config().told_by_distance(8)) continue;
        const std::vector<std::int32_t> pair{s.request.ids[static_cast<std::size_t>(query)],
                                             s.request.ids[static_cast<std::size_t>(key)]};
        const TokenCircuits circuits =
            token_circuits(s.model(), s.backend, {{0, head}, static_cast<int>(query - key)}, pair);
        const float found = circuits.qk.at(0, static_cast<Index>(circuits.tokens.size()) - 1);
        CHECK(found == doctest::Approx(scores.at(head, query, key)).epsilon(1e-3).scale(0.1));
      }
  }
}

TEST_CASE("the OV circuit is what a looked-at token does to the logits") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    ReadSubject s(folder);
    const bool centred = s.model().config().norm == NormKind::layer_norm;
    const std::vector<std::int32_t> tokens{5, 9, 30, 17};
    const int layer = 1, head = 2;
    const TokenCircuits circuits = token_circuits(s.model(), s.backend, {{layer, head}, 0}, tokens, 4);
    const HeadWeights& w = s.weights.blocks[layer].heads[head];
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const Tensor e = normalized(s.model().config(), s.weights.blocks[layer].ln1, s.backend,
                                  s.backend.gather(s.weights.token_embedding, std::span(tokens).subspan(i, 1)));
      auto written = testing::times(testing::times(testing::row(e, 0), w.v), w.o);
      double mean = 0, all = 0;
      for (const double x : written) mean += centred ? x / static_cast<double>(written.size()) : 0;
      for (std::size_t d = 0; d < written.size(); ++d)
        written[d] = (written[d] - mean) * static_cast<double>(s.weights.final_norm.gain.at(static_cast<Index>(d)));
      const auto logits = testing::times(written, s.weights.unembedding);
      for (const double x : logits) all += x / static_cast<double>(logits.size());
      for (std::size_t j = 0; j < tokens.size(); ++j)
        CHECK(circuits.ov.at(static_cast<Index>(i), static_cast<Index>(j)) ==
              doctest::Approx(logits[static_cast<std::size_t>(tokens[j])] - all).epsilon(1e-3).scale(0.1));
      const auto best = static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
      CHECK(circuits.raises[i * 4].from == tokens[i]);
      CHECK(circuits.raises[i * 4].to == best);
      CHECK(circuits.raises[i * 4 + 1].value <= circuits.raises[i * 4].value);
    }
  }
}

TEST_CASE("pairs of the whole vocabulary are those of all tokens, sorted") {
  ReadSubject s("llama-gqa");
  std::vector<std::int32_t> all(61);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  const CircuitOf of{{1, 3}, 2};
  const TokenCircuits table = token_circuits(s.model(), s.backend, of, all);
  const FullCircuits full = full_circuits(s.model(), s.ctx(), of, 9);
  std::vector<float> ov, qk;
  int copies = 0, ten = 0, matches = 0;
  for (Index i = 0; i < 61; ++i) {
    Index above = 0, above_qk = 0;
    for (Index j = 0; j < 61; ++j) {
      ov.push_back(table.ov.at(i, j));
      qk.push_back(table.qk.at(i, j));
      above += table.ov.at(i, j) > table.ov.at(i, i);
      above_qk += table.qk.at(i, j) > table.qk.at(i, i);
    }
    copies += above == 0;
    ten += above < 10;
    matches += above_qk == 0;
  }
  std::ranges::sort(ov, std::ranges::greater{});
  std::ranges::sort(qk, std::ranges::greater{});
  REQUIRE(full.ov.size() == 9);
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(full.ov[i].value == doctest::Approx(ov[i]));
    CHECK(full.qk[i].value == doctest::Approx(qk[i]));
    CHECK(full.ov[i].value == doctest::Approx(table.ov.at(full.ov[i].from, full.ov[i].to)));
    CHECK(full.qk[i].value == doctest::Approx(table.qk.at(full.qk[i].from, full.qk[i].to)));
  }
  // To the bit, whichever thread took which rows.
  CHECK(full.copies_first == copies / 61.0);
  CHECK(full.copies_ten == ten / 61.0);
  CHECK(full.matches_first == matches / 61.0);
}

TEST_CASE("the copying score of circuits whose eigenvalues are known") {
  Backend backend(1);
  CHECK(copying_score(*four_directions(diagonal(1, 2, 1, 3), backend), backend, {0, 0}).copying == doctest::Approx(1));
  CHECK(copying_score(*four_directions(diagonal(-1, -1, -2, -1), backend), backend, {0, 0}).copying ==
        doctest::Approx(-1));
  CHECK(copying_score(*four_directions(diagonal(1, 1, 1, -1), backend), backend, {0, 0}).copying ==
        doctest::Approx(0.5));
  Tensor turn = Tensor::zeros({4, 4});  // a quarter turn in two planes: imaginary eigenvalues
  turn.ref(0, 1) = turn.ref(2, 3) = 1;
  turn.ref(1, 0) = turn.ref(3, 2) = -1;
  const CopyingScore turned = copying_score(*four_directions(turn, backend), backend, {0, 0});
  CHECK(turned.copying == doctest::Approx(0).epsilon(1e-6));
  CHECK(turned.matching == doctest::Approx(1));  // W_Q W_Kᵀ is the identity
  const FullCircuits full =
      full_circuits(*four_directions(diagonal(1, 1, 1, -1), backend), Ctx{.backend = backend}, {{0, 0}, 0});
  CHECK(full.copies_first == doctest::Approx(0.75));
  CHECK(full.matches_first == doctest::Approx(1));
}

TEST_CASE("a norm of token and position together leaves no token a circuit of its own") {
  Backend backend(1);
  const auto model = Model::load(testing::reference("encoder-decoders/mbart"), backend);
  REQUIRE(model->config().norm_of_embeddings);
  const std::vector<std::int32_t> tokens{5, 6};
  CHECK_THROWS_WITH_AS(token_circuits(*model, backend, {{0, 0}, 0}, tokens), doctest::Contains("norm of token"), Error);
}

TEST_CASE("where layers lend keys, or values have a norm, one stands behind attention, too: no head has a circuit") {
  Backend backend(1);
  const std::vector<std::int32_t> tokens{5, 6};
  int lending = 0, normed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::reference("families"))) {
    const auto model = Model::load(entry.path(), backend);
    const ModelConfig& c = model->config();
    if (c.kv_layers.empty() && !c.value_norm) continue;
    CAPTURE(entry.path().filename().string());
    lending += !c.kv_layers.empty(), normed += c.value_norm;
    for (int layer = 0; layer < c.dims.layers; ++layer)
      CHECK_THROWS_WITH_AS(token_circuits(*model, backend, {{layer, 0}, 0}, tokens),
                           doctest::Contains("a norm behind attention"), Error);
  }
  CHECK(lending >= 3);
  CHECK(normed >= 5);
}

TEST_CASE("circuits of what is not there") {
  ReadSubject s("gpt2-random");
  const std::vector<std::int32_t> tokens{1, 2}, outside{1, 257}, none;
  CHECK_THROWS_AS(token_circuits(s.model(), s.backend, {{2, 0}, 0}, tokens), Error);
  CHECK_THROWS_AS(token_circuits(s.model(), s.backend, {{0, 4}, 0}, tokens), Error);
  CHECK_THROWS_AS(token_circuits(s.model(), s.backend, {{0, 0}, -1}, tokens), Error);
  CHECK_THROWS_AS(token_circuits(s.model(), s.backend, {{0, 0}, 0}, outside), Error);
  CHECK_THROWS_AS(token_circuits(s.model(), s.backend, {{0, 0}, 0}, none), Error);
}

}  // namespace headscope::circuits_test
