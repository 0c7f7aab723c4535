#include "core/train/gradients.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/support/paths.h"

namespace headscope::training_gradients_test {

namespace {

/// Adds to one element of one site.
class Nudge final : public Tap {
 public:
  Nudge(Site site, Index element, float by) : site_(site), element_(element), by_(by) {}
  bool wants(Site site) const override { return site == site_; }
  Tensor at(Site, const Tensor& value) override {
    Tensor changed = value.copy();
    changed.mutable_data()[element_] += by_;
    return changed;
  }

 private:
  Site site_;
  Index element_;
  float by_;
};

double value_of(const Model& model, Backend& backend, std::span<const std::int32_t> tokens, const GradientOf& of,
                Tap* tap) {
  return input_gradients(model, Ctx{.backend = backend, .tap = tap}, tokens, of).value;
}

}  // namespace

TEST_CASE("gradients of logits and loss with respect to embeddings and patterns, by moving them") {
  Backend backend(2);
  const std::vector<std::int32_t> tokens{5, 9, 5, 30, 9, 5};
  using Kind = GradientOf::Kind;
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    const auto model = Model::load(testing::source_dir() / "tests/reference" / folder, backend);
    for (const GradientOf& of : {GradientOf{.kind = Kind::logit, .token = 7},
                                 GradientOf{.kind = Kind::logit_difference, .position = 3, .token = 7, .other = 2},
                                 GradientOf{.kind = Kind::loss}}) {
      CAPTURE(folder);
      CAPTURE(static_cast<int>(of.kind));
      const InputGradients g = input_gradients(*model, Ctx{.backend = backend}, tokens, of);
      REQUIRE(g.patterns.size() == 2);
      REQUIRE(g.gradient_times_input.size() == tokens.size());
      const float step = 2e-2f;
      const auto slope = [&](Site site, Index element) {
        Nudge up(site, element, step), down(site, element, -step);
        return (value_of(*model, backend, tokens, of, &up) - value_of(*model, backend, tokens, of, &down)) / (2 * step);
      };
      const Index d = model->config().dims.d_model;
      double largest = 0;
      for (Index i = 0; i < static_cast<Index>(tokens.size()); ++i)
        for (Index j = 0; j < d; j += 11) {
          const double expected = slope({SiteKind::embed}, i * d + j);
          largest = std::max(largest, std::abs(expected));
          CHECK(g.embedding.at(i, j) == doctest::Approx(expected).epsilon(0.02).scale(0.1));
        }
      CHECK(largest > 0.01);
      largest = 0;
      for (int layer = 0; layer < 2; ++layer)
        for (Index head = 0; head < 4; ++head)
          for (const auto& [i, j] : {std::pair<Index, Index>{2, 0}, {3, 3}, {5, 1}}) {
            const double expected = slope({SiteKind::pattern, layer}, (head * 6 + i) * 6 + j);
            largest = std::max(largest, std::abs(expected));
            CHECK(g.patterns[static_cast<std::size_t>(layer)].at(head, i, j) ==
                  doctest::Approx(expected).epsilon(0.02).scale(0.1));
          }
      CHECK(largest > 0.01);
    }
  }
}

TEST_CASE("gradients of what is not there") {
  Backend backend(1);
  const auto model = Model::load(testing::source_dir() / "tests/reference/gpt2-random", backend);
  const std::vector<std::int32_t> tokens{1, 2};
  const Ctx ctx{.backend = backend};
  CHECK_THROWS_AS(input_gradients(*model, ctx, tokens, {.position = 2, .token = 1}), Error);
  CHECK_THROWS_AS(input_gradients(*model, ctx, tokens, {.token = 257}), Error);
  CHECK_THROWS_AS(input_gradients(*model, ctx, std::span(tokens).first(1), {.kind = GradientOf::Kind::loss}), Error);
}

}  // namespace headscope::training_gradients_test
