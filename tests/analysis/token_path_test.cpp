#include "core/analysis/token_path.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "core/analysis/residual_stream.h"
#include "core/base/error.h"
#include "core/io/picture.h"
#include "core/train/parameters.h"
#include "tests/analysis/subjects.h"

namespace headscope::token_path_test {

using testing::ReadSubject;

namespace {
const PathStage& stage(const TokenPath& path, const std::string& name, std::size_t nth = 0) {
  for (const PathStage& each : path.stages)
    if (each.name == name && nth-- == 0) return each;
  FAIL("no stage " << name);
  return path.stages[0];
}
}  // namespace

TEST_CASE("the stages of a token follow from one another, to the answer") {
  for (const char* folder : {"gpt2-random", "llama-gqa", "gpt2-untied-erf"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const TokenPath path = read_token_path(s.model(), *s.trace, 3);
    const bool learned = s.model().config().position == PositionKind::learned;
    CHECK(path.stages.size() == static_cast<std::size_t>(1 + 2 * learned + 6 * s.dims().layers + 2));
    // The embedding is the row of the table.
    for (Index d = 0; d < s.dims().d_model; ++d)
      CHECK(stage(path, "token embedding").row.at(d) == s.weights.token_embedding.at(30, d));
    // x + attention, x + MLP; what comes in is what the stage before gave.
    const PathStage* stream = learned ? &stage(path, "sum") : &stage(path, "token embedding");
    for (int layer = 0; layer < s.dims().layers; ++layer) {
      const std::string l = std::to_string(layer);
      const PathStage &attention = stage(path, l + " attention"), &mid = stage(path, l + " stream"),
                      &mlp = stage(path, l + " MLP"), &post = stage(path, l + " stream", 1);
      CHECK(attention.adds);
      for (Index d = 0; d < s.dims().d_model; ++d) {
        CHECK(mid.row.at(d) == doctest::Approx(stream->row.at(d) + attention.row.at(d)).epsilon(1e-5).scale(1));
        CHECK(post.row.at(d) == doctest::Approx(mid.row.at(d) + mlp.row.at(d)).epsilon(1e-5).scale(1));
      }
      stream = &post;
    }
    const auto logits = testing::times(
        [&] {
          std::vector<double> x;
          for (const float v : stage(path, "last norm").row.values()) x.push_back(static_cast<double>(v));
          return x;
        }(),
        s.weights.unembedding);
    double total = 0;
    const double most = *std::ranges::max_element(logits);
    for (const double v : logits) total += std::exp(v - most);
    const PathStage& out = path.stages.back();
    CHECK(out.shape == "8 × " + std::to_string(s.dims().vocab));
    for (std::size_t t = 0; t < logits.size(); ++t)
      CHECK(static_cast<double>(out.row.at(static_cast<Index>(t))) ==
            doctest::Approx(logits[t]).epsilon(1e-3).scale(1));
    CHECK(path.answers[0].probability == doctest::Approx(1 / total).epsilon(1e-3));
    double square = 0;
    for (const double v : logits) square += v * v;
    CHECK(out.norm == doctest::Approx(std::sqrt(square)).epsilon(1e-3));
    CHECK_THROWS_AS(read_token_path(s.model(), *s.trace, 8), Error);
  }
}

TEST_CASE("whether the weights are tied is read off the memory they lie in") {
  const ReadSubject tied("gpt2-random"), untied("gpt2-untied-erf");
  CHECK(weight_tying(tied.model()).tied);
  CHECK_FALSE(weight_tying(untied.model()).tied);
  CHECK(weight_tying(tied.model()).matrix_bytes ==
        static_cast<std::size_t>(4 * tied.dims().vocab * tied.dims().d_model));
}

TEST_CASE("a picture's path: a learned token or a patch through its matrix, and scores at CLS alone") {
  Backend backend{1};
  const LoadedModel loaded = load_model(testing::reference("vision/deit"), backend);
  const VisionConfig& vision = *loaded.model->config().vision;
  REQUIRE(vision.leading == 2);
  RunRequest request;
  request.image = built_in_picture;
  request.capture.sites = token_path_sites(*loaded.model);
  const auto trace = run(loaded, request, Ctx{backend});
  const std::string patch =
      std::to_string(vision.channels * vision.patch * vision.patch) + " numbers of the patch · W_patch + b";
  for (const Index position : {0, 1, 2}) {
    CAPTURE(position);
    const TokenPath path = read_token_path(*loaded.model, *trace, position);
    const PathStage& first = path.stages[0];
    CHECK(first.name == "embedding");
    CHECK(first.formula ==
          (position < 2 ? "learned: " + trace->tokens[static_cast<std::size_t>(position)].label : patch));
    CHECK(first.site == Site{SiteKind::embed, -1});
    CHECK(first.norm == doctest::Approx(norm_of(trace->sites.at({SiteKind::embed, -1}).select(0, position).values())));
    CHECK(path.answers.empty() == (position > 0));
    CHECK((path.stages.back().name == "logits") == (position == 0));
  }
}

TEST_CASE("what a path needs: positions where they are learned, a norm before the first layer where there is one") {
  for (const char* folder : {"gpt2-random", "llama-gqa", "families/modernbert"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const ModelConfig& c = s.model().config();
    const std::set<SiteKind> sites = token_path_sites(s.model());
    CHECK(sites.contains(SiteKind::pos_embed) == (c.position == PositionKind::learned));
    CHECK(sites.contains(SiteKind::mlp_out));
    CHECK_FALSE(sites.contains(SiteKind::segment_embed));
    const TokenPath path = read_token_path(s.model(), *s.trace, 2);
    const auto norms = std::ranges::count_if(
        path.stages, [](const PathStage& stage) { return stage.site.kind == SiteKind::ln1_normalized; });
    CHECK(norms == s.dims().layers - (c.first_norm ? 0 : 1));
    CHECK(c.first_norm == (std::string(folder) != "families/modernbert"));
  }
}

TEST_CASE("an MLP of one neuron is an MLP") {
  Backend backend{1};
  ModelConfig config;
  config.name = "narrow", config.family = "gpt2";
  config.dims = {.layers = 1, .heads = 1, .kv_heads = 1, .d_head = 4, .d_model = 4, .d_mlp = 1, .vocab = 7};
  config.context = 8;
  LoadedModel loaded;
  loaded.model = Parameters::initial(config, 1).trainable_model(backend);
  RunRequest request;
  request.ids = {1, 2, 3};
  request.capture.sites = token_path_sites(*loaded.model);
  const auto trace = run(loaded, request, Ctx{backend});
  const TokenPath path = read_token_path(*loaded.model, *trace, 1);
  CHECK(stage(path, "0 MLP").formula == "φ(x W_in) W_out");
  CHECK(stage(path, "0 stream", 1).formula == "x + MLP");
}

TEST_CASE("norms behind heads and sums are told, and what the stream is multiplied by there") {
  const ReadSubject bitnet("families/bitnet"), minimax("families/minimax");
  const TokenPath normed = read_token_path(bitnet.model(), *bitnet.trace, 3),
                  kept = read_token_path(minimax.model(), *minimax.trace, 3);
  CHECK(stage(normed, "0 attention").formula == "norm(all heads' A v) W_O");
  CHECK(stage(normed, "0 MLP").formula == "norm(φ(x W_gate) ∘ x W_up) W_down");
  CHECK(stage(kept, "0 state").formula == "norm(all heads' α v) gated W_O");
  CHECK(stage(kept, "0 stream").formula == "norm(0.6 x + state)");
  CHECK(stage(kept, "0 stream", 1).formula == "norm(1.3 x + MLP)");
  CHECK(stage(kept, "1 stream").formula == "norm(1.7 x + attention)");
}

TEST_CASE("a layer that does not attend says by what it mixes, and what it writes adds up all the same") {
  for (const auto& [folder, name, formula] :
       {std::tuple{"families/granitemoehybrid", "state", "Σ heads (α x + d x) gated W_O"},
        {"families/qwen3_5_text", "state", "Σ heads norm(α v) gated W_O"},
        {"families/lfm2", "convolution", "Σ heads α x W_O"}}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const TokenPath path = read_token_path(s.model(), *s.trace, 3);
    for (int layer = 0; layer < s.dims().layers; ++layer) {
      const std::string l = std::to_string(layer) + " ";
      const bool attends = s.dims().attends(layer);
      const PathStage &mixed = stage(path, l + (attends ? "attention" : name)), &mid = stage(path, l + "stream");
      if (!attends) CHECK(mixed.formula == formula);
      CHECK(mid.formula == (attends ? "x + attention" : std::string("x + ") + name));
      const PathStage& before =
          layer > 0 ? stage(path, std::to_string(layer - 1) + " stream", 1) : stage(path, "token embedding");
      for (Index d = 0; d < s.dims().d_model; ++d)
        CHECK(mid.row.at(d) ==
              doctest::Approx(static_cast<double>(before.row.at(d)) + static_cast<double>(mixed.row.at(d)))
                  .epsilon(1e-4)
                  .scale(1));
    }
  }
}

}  // namespace headscope::token_path_test
