#include "core/analysis/saliency.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/io/picture.h"
#include "tests/analysis/subjects.h"

namespace headscope::saliency_test {

using testing::ReadSubject;

namespace {
/// One cell of a pattern times a factor.
class Scaled final : public Tap {
 public:
  Scaled(Site site, Index head, Index query, Index key, float factor)
      : site_(site), head_(head), query_(query), key_(key), factor_(factor) {}
  bool wants(Site site) const override { return site == site_; }
  Tensor at(Site, const Tensor& value) override {
    Tensor changed = value.copy();
    changed.ref(head_, query_, key_) *= factor_;
    return changed;
  }

 private:
  Site site_;
  Index head_, query_, key_;
  float factor_;
};
}  // namespace

TEST_CASE("attention × gradient is what a logit loses, to first order, with a cell made smaller") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    for (const char* edit : {"", "0.1: temperature 0.5", "*: post norm", "1: post norm"}) {
      CAPTURE(folder);
      CAPTURE(edit);
      std::vector<Intervention> edits;
      if (*edit) edits.push_back(parse_intervention(edit, "test"));
      ReadSubject s(folder, {5, 9, 5, 30, 9, 5, 17, 2}, edits);
      const GradientOf of{.kind = GradientOf::Kind::logit, .position = -1, .token = 7};
      const Saliency found = read_saliency(s.loaded, s.request, s.ctx(), *s.trace, of);
      CHECK(found.gradients.value == doctest::Approx(s.trace->logits.at(7, 7)).epsilon(1e-5));
      double sum = 0;
      for (const auto& [layer, head, query, key] :
           {std::array<Index, 4>{0, 0, 5, 2}, {1, 3, 7, 4}, {0, 1, 6, 6}, {1, 2, 7, 0}}) {
        const auto logit = [&](float factor) {
          Scaled tap({SiteKind::pattern, static_cast<int>(layer)}, head, query, key, factor);
          return static_cast<double>(run(s.loaded, s.request, Ctx{.backend = s.backend, .tap = &tap})->logits.at(7, 7));
        };
        const double slope = (logit(1.2f) - logit(0.8f)) / 0.4;
        CHECK(found.weighted[static_cast<std::size_t>(layer)].at(head, query, key) ==
              doctest::Approx(slope).epsilon(0.03).scale(0.02));
        sum += std::abs(slope);
      }
      CHECK(sum > 0.01);
      double signed_sum = 0, sizes = 0;
      for (Index i = 0; i < 8; ++i)
        for (Index j = 0; j < 8; ++j) {
          signed_sum += static_cast<double>(found.weighted[1].at(2, i, j));
          sizes += std::abs(static_cast<double>(found.weighted[1].at(2, i, j)));
        }
      CHECK(found.importance.at(1, 2) == doctest::Approx(std::abs(signed_sum)).epsilon(1e-4));
      CHECK(found.reach.at(1, 2) == doctest::Approx(sizes));
      CHECK(found.weighted[0].at(0, 2, 5) == 0);
    }
  }
}

TEST_CASE("an embedding that a norm reads with nothing added has no gradient × input, and the model says so") {
  int alone = 0;
  for (const char* folder : {"deberta_v2", "deberta_v2-one", "deberta-published", "deberta_v2-apart", "deberta", "bert",
                             "roformer", "gemma3_text"}) {
    CAPTURE(folder);
    ReadSubject s(std::string("families/") + folder);
    const Saliency found = read_saliency(s.loaded, s.request, s.ctx(), *s.trace, {.position = 3, .token = 7});
    double largest = 0;
    for (const float each : found.gradients.gradient_times_input)
      largest = std::max(largest, std::abs(static_cast<double>(each)));
    const bool said = s.model().config().normed_alone();
    CHECK(said == (largest < 1e-4));
    alone += said;
  }
  CHECK(alone == 3);
}

TEST_CASE("gradients past a replaced tensor are refused, not invented") {
  ReadSubject s("gpt2-random", {5, 9, 5}, {parse_intervention("0.1: ablate zero", "test")});
  CHECK_THROWS_WITH_AS(read_saliency(s.loaded, s.request, s.ctx(), *s.trace, {.token = 7}),
                       doctest::Contains("blocks.0.attn.hook_z"), Error);
  // Norms that move at some positions are copied row by row.
  ReadSubject some("gpt2-random", {5, 9, 5}, {parse_intervention("*@1..2: post norm", "test")});
  CHECK_THROWS_WITH_AS(read_saliency(some.loaded, some.request, some.ctx(), *some.trace, {.token = 7}),
                       doctest::Contains("no gradient flows"), Error);
}

TEST_CASE("norms moved in several layers pass gradients on; a second move of one layer does not") {
  const auto flows = [](std::vector<std::string> lines) {
    std::vector<Intervention> edits;
    for (const std::string& line : lines) edits.push_back(parse_intervention(line, "test"));
    ReadSubject s("gpt2-random", {5, 9, 5}, edits);
    try {
      read_saliency(s.loaded, s.request, s.ctx(), *s.trace, {.token = 7});
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("no gradient flows") != std::string::npos);
      return false;
    }
    return true;
  };
  CHECK(flows({"0: post norm", "1: post norm"}));
  CHECK_FALSE(flows({"0: post norm", "0: post norm"}));
  CHECK_FALSE(flows({"*: post norm", "1: post norm"}));
  CHECK_FALSE(flows({"1: post norm", "*: post norm"}));
}

TEST_CASE("of a picture the score of a class at CLS has a gradient, and nothing else") {
  Backend backend{1};
  const LoadedModel loaded = load_model(testing::reference("vision/vit"), backend);
  RunRequest request;
  request.image = built_in_picture;
  const Ctx ctx{backend};
  const auto trace = run(loaded, request, ctx);
  const auto read = [&](const GradientOf& of) { return read_saliency(loaded, request, ctx, *trace, of); };
  const GradientOf cls{.kind = GradientOf::Kind::logit, .position = 0, .token = 1};
  CHECK(read(cls).gradients.value == doctest::Approx(trace->logits.at(0, 1)).epsilon(1e-5));
  CHECK(read({.kind = GradientOf::Kind::logit, .position = -1, .token = 1}).importance.at(0, 0) ==
        doctest::Approx(read(cls).importance.at(0, 0)));
  CHECK_THROWS_WITH_AS(read({.kind = GradientOf::Kind::logit, .position = 1, .token = 1}),
                       doctest::Contains("read at position 0 (CLS), found position 1"), Error);
  CHECK_THROWS_WITH_AS(read({.kind = GradientOf::Kind::loss}), doctest::Contains("found a loss"), Error);
}

}  // namespace headscope::saliency_test
