// What reading tools say of vision transformers: lens, attribution, gradients, positions on the grid, patch embedding.

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "core/analysis/logit_attribution.h"
#include "core/analysis/logit_lens.h"
#include "core/analysis/need.h"
#include "core/analysis/patch_embedding.h"
#include "core/analysis/saliency.h"
#include "core/base/error.h"
#include "core/edits/intervention.h"
#include "core/metrics/next_token.h"
#include "core/model/picture_input.h"
#include "core/model/weights.h"
#include "tests/model/seer.h"

namespace headscope::vision_reading_test {

using namespace testing;

TEST_CASE("logit lens, attribution and gradients read a picture's class at CLS") {
  Seer s("vit");
  const Model& model = *s.loaded.model;
  const Ctx ctx{s.backend};
  const auto trace = s.trace(with_sites(s.request(), logit_lens_sites(model)));
  const LogitLens lens = logit_lens(model, ctx, *trace, {}, 2);
  const NextToken best = most_probable(*trace);
  CHECK(lens.cell(static_cast<Index>(lens.stages.size()) - 1, 0)[0].id == best.id);
  CHECK(lens.cell(static_cast<Index>(lens.stages.size()) - 1, 0)[0].probability == doctest::Approx(best.probability));

  const auto recorded = s.trace(with_sites(s.request(), attribution_sites(model)));
  const LogitAttribution parts = logit_attribution(model, *recorded, {.position = 0, .token = best.id});
  CHECK(parts.sum() == doctest::Approx(best.logit).epsilon(1e-4));
  CHECK_THROWS_WITH_AS(logit_attribution(model, *recorded, {.position = 2, .token = 1}), doctest::Contains("CLS"),
                       Error);

  // The gradient of a score by a patch's embedding, beside a difference.
  const GradientOf of{.kind = GradientOf::Kind::logit, .position = 0, .token = 3};
  for (const char* name : {"vit", "deit-teacher"}) {
    Seer each(name);
    GradientOf one = of;
    one.token = 1;
    const auto plain = each.trace(each.request());
    const Saliency found = read_saliency(each.loaded, each.request(), Ctx{each.backend}, *plain, one);
    CHECK(found.gradients.value == doctest::Approx(plain->logits.at(0, 1)).epsilon(1e-4));
    struct Nudge final : Tap {
      float by;
      explicit Nudge(float much) : by(much) {}
      bool wants(Site site) const override { return site.kind == SiteKind::embed; }
      Tensor at(Site, const Tensor& value) override {
        Tensor changed = value.copy();
        changed.ref(4, 5) += by;
        return changed;
      }
    } up(4e-3f), down(-4e-3f);
    const auto moved = [&](Tap& tap) {
      return static_cast<double>(
          run(each.loaded, each.request(), Ctx{.backend = each.backend, .tap = &tap})->logits.at(0, 1));
    };
    CHECK(found.gradients.embedding.at(4, 5) ==
          doctest::Approx((moved(up) - moved(down)) / 8e-3).epsilon(0.02).scale(0.1));
    CHECK_THROWS_WITH_AS(
        read_saliency(each.loaded, each.request(), Ctx{each.backend}, *plain, {.kind = GradientOf::Kind::loss}),
        doctest::Contains("score of a class"), Error);
  }
  Seer teacher("deit-teacher");
  const auto two = teacher.trace(with_sites(teacher.request(), attribution_sites(*teacher.loaded.model)));
  CHECK_THROWS_WITH_AS(logit_attribution(*teacher.loaded.model, *two, {.position = 0, .token = 1}),
                       doctest::Contains("one matrix to its logits"), Error);
}

TEST_CASE("positions are compared on the grid, patches become tokens") {
  Seer s("vit-wide");
  const Tensor found = position_similarity(*s.loaded.model);
  const Tensor table = s.loaded.model->weights().position_embedding;
  CHECK(found.shape() == Shape{12, 12});
  double product = 0, a = 0, b = 0;
  for (Index k = 0; k < 18; ++k) {
    product += static_cast<double>(table.at(1 + 2, k)) * static_cast<double>(table.at(1 + 7, k));
    a += std::pow(static_cast<double>(table.at(3, k)), 2), b += std::pow(static_cast<double>(table.at(8, k)), 2);
  }
  CHECK(found.at(2, 7) == doctest::Approx(product / std::sqrt(a * b)).epsilon(1e-5));
  CHECK(found.at(7, 2) == found.at(2, 7));
  CHECK(found.at(5, 5) == doctest::Approx(1));
  // A grid of 1 × 3 by hand: rows (0,1), (1,2) are neighbours, (0,2) shares the row.
  VisionConfig line;
  line.height = 4, line.width = 12, line.patch = 4;
  Tensor known = Tensor::full({3, 3}, 1.0f);
  known.ref(0, 1) = known.ref(1, 0) = 0.5f;
  known.ref(1, 2) = known.ref(2, 1) = 0.25f;
  known.ref(0, 2) = known.ref(2, 0) = -0.5f;
  const GridSimilarity means = grid_similarity(known, line);
  CHECK(means.same_row == doctest::Approx((0.5 + 0.25 - 0.5) / 3));
  CHECK(means.neighbours == doctest::Approx(0.375));
  CHECK(std::isnan(means.same_column));

  // Patches that are turned have no table.
  Seer turned("dinov3_vit");
  CHECK_THROWS_WITH_AS(position_similarity(*turned.loaded.model), doctest::Contains("a table of positions"), Error);

  const auto trace = s.trace(with_sites(s.request(), {SiteKind::embed}));
  const std::vector<PatchToken> tokens = patch_tokens(*s.loaded.model, *trace);
  REQUIRE(tokens.size() == 12);
  CHECK(tokens[6].row == 1);
  CHECK(tokens[6].column == 2);
  CHECK(tokens[6].position == 7);
  double mean = 0;
  for (Index k = 0; k < 48; ++k) mean += static_cast<double>(trace->patches.at(6, k)) / 48;
  CHECK(tokens[6].mean == doctest::Approx(mean));
  const MassOnPatches mass = mass_on_patches(*trace, {0, 0}, 0, {0, 5});
  CHECK(mass.chance == doctest::Approx(2.0 / 13));
  CHECK(mass.mass == doctest::Approx(static_cast<double>(trace->map({0, 0}).weight(0, 1)) +
                                     static_cast<double>(trace->map({0, 0}).weight(0, 6))));
}

TEST_CASE("a picture's rotation by hand, and edits of positions that a grid does not have") {
  VisionConfig v;
  v.height = 4, v.width = 8, v.patch = 4, v.leading = 2, v.registers = 1;  // one row, two columns: x = −1/2 and 1/2
  const RotaryTable table = picture_rotation(v, 16, 8);
  REQUIRE(table.cosine.shape() == Shape{4, 4});
  for (Index i = 0; i < 4; ++i) {
    CHECK(table.cosine.at(1, i) == 1);  // the register
    CHECK(table.sine.at(1, i) == 0);
    CHECK(table.sine.at(3, i) == doctest::Approx(i < 2 ? 0 : std::sin(std::numbers::pi / (i == 2 ? 1 : 4))).scale(1));
    CHECK(table.sine.at(2, i) == doctest::Approx(-table.sine.at(3, i)).scale(1));
    CHECK(table.cosine.at(2, i) == doctest::Approx(i < 2 ? 1 : std::cos(std::numbers::pi / (i == 2 ? 1 : 4))));
  }
  Seer s("dinov3_vit");
  for (const char* line : {"*: position rope base 50", "*: position shift 2", "*: position none"}) {
    RunRequest request = s.request();
    request.edits.push_back(parse_intervention(line, "test"));
    CHECK_THROWS_WITH_AS(s.trace(request), doctest::Contains("turned by their row"), Error);
  }
}

TEST_CASE("a word asked of the patches is a softmax of their normed streams against the word's column") {
  Seer s("vit");
  const Model& model = *s.loaded.model;
  const auto trace = s.trace(with_sites(s.request(), logit_lens_sites(model)));
  const std::int32_t word = 2;
  const std::vector<AskedPatch> found = ask_patches(model, Ctx{s.backend}, *trace, word);
  const VisionConfig& v = *s.config().vision;
  REQUIRE(std::ssize(found) == v.patches());
  const ModelWeights& w = model.weights();
  const Tensor& stream = need(*trace, {SiteKind::resid_post, s.config().dims.layers - 1});
  const Index width = s.config().dims.d_model;
  std::vector<double> scores;
  double sum = 0;
  for (Index patch = 0; patch < v.patches(); ++patch) {
    const auto x = [&](Index k) { return static_cast<double>(stream.at(v.leading + patch, k)); };
    double mean = 0, square = 0;
    for (Index k = 0; k < width; ++k) mean += x(k) / static_cast<double>(width);
    for (Index k = 0; k < width; ++k) square += (x(k) - mean) * (x(k) - mean) / static_cast<double>(width);
    const auto logit = [&](Index of) {
      double score = static_cast<double>(w.unembedding_bias.at(of));
      for (Index k = 0; k < width; ++k)
        score += static_cast<double>(w.unembedding.at(k, of)) *
                 ((x(k) - mean) / std::sqrt(square + s.config().norm_epsilon) *
                      static_cast<double>(w.final_norm.gain.at(k)) +
                  static_cast<double>(w.final_norm.bias.at(k)));
      return score;
    };
    scores.push_back(logit(word));
    sum += std::exp(scores.back());
    int rank = 1;
    for (Index of = 0; of < s.config().dims.vocab; ++of) rank += logit(of) > scores.back();
    CHECK(nth(found, patch).rank == rank);
  }
  for (Index patch = 0; patch < v.patches(); ++patch) {
    CHECK(nth(found, patch).position == v.leading + patch);
    CHECK(nth(found, patch).score == doctest::Approx(nth(scores, patch)).epsilon(1e-4));
    CHECK(nth(found, patch).weight == doctest::Approx(std::exp(nth(scores, patch)) / sum).epsilon(1e-4));
  }
}

}  // namespace headscope::vision_reading_test
