#include "core/analysis/logit_attribution.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/analysis/subjects.h"

namespace headscope::logit_attribution_test {

using testing::ReadSubject;
using Kind = AttributionPart::Kind;

TEST_CASE("the parts of a logit sum to it") {
  for (const char* folder : {"gpt2-random", "gpt2-untied-erf", "gpt2-f16", "llama-gqa", "llama-bias", "llama-rope3"})
    for (const AttributionOf& of :
         {AttributionOf{.token = 7}, AttributionOf{.position = 3, .token = 7, .against = 2}}) {
      CAPTURE(folder);
      const ReadSubject s(folder);
      const LogitAttribution a = logit_attribution(s.model(), *s.trace, of);
      CHECK(a.sum() == doctest::Approx(a.logit).epsilon(1e-5).scale(10));  // 1e-4
      for (const AttributionPart& part : a.parts) CHECK(part.kind != Kind::remainder);
      const Index row = of.position < 0 ? 7 : of.position;
      const float logit = s.trace->logits.at(row, 7) - (of.against ? s.trace->logits.at(row, 2) : 0.0f);
      CHECK(a.logit == doctest::Approx(logit));
      CHECK(a.of.position == row);
    }
}

TEST_CASE("a head's part is what the logit loses without it, the norm's scale as it was") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const bool centred = s.model().config().norm == NormKind::layer_norm;
    const LogitAttribution a = logit_attribution(s.model(), *s.trace, {.position = 5, .token = 11});
    const auto logit_of = [&](const std::vector<double>& residual, double scale) {
      double mean = 0, sum = 0;
      for (const double x : residual) mean += centred ? x / static_cast<double>(residual.size()) : 0;
      for (std::size_t i = 0; i < residual.size(); ++i) {
        const auto at = static_cast<Index>(i);
        const double bias = centred ? static_cast<double>(s.weights.final_norm.bias.at(at)) : 0;
        sum += ((residual[i] - mean) * scale * static_cast<double>(s.weights.final_norm.gain.at(at)) + bias) *
               static_cast<double>(s.weights.unembedding.at(at, 11));
      }
      return sum;
    };
    const auto residual = testing::row(s.site(SiteKind::resid_post, 1), 5);
    CHECK(logit_of(residual, a.scale) == doctest::Approx(a.logit).epsilon(1e-4));
    for (int layer = 0; layer < 2; ++layer) {
      for (int head = 0; head < 4; ++head) {
        auto without = residual;
        for (Index i = 0; i < s.dims().d_model; ++i)
          without[static_cast<std::size_t>(i)] -= static_cast<double>(s.site(SiteKind::result, layer).at(5, head, i));
        const double part = a.value(Kind::head, layer, head);
        CHECK(part == doctest::Approx(a.logit - logit_of(without, a.scale)).epsilon(1e-3).scale(0.1));
        double sources = 0;
        for (Index key = 0; key < a.by_source.dim(1); ++key)
          sources += static_cast<double>(a.by_source.at(layer * 4 + head, key));
        CHECK(sources == doctest::Approx(part).epsilon(1e-4).scale(0.1));
        CHECK(a.by_source.at(layer * 4 + head, 6) == 0);  // the future
      }
      auto without = residual;
      for (Index i = 0; i < s.dims().d_model; ++i)
        without[static_cast<std::size_t>(i)] -= static_cast<double>(s.site(SiteKind::mlp_out, layer).at(5, i));
      CHECK(a.value(Kind::mlp, layer) ==
            doctest::Approx(a.logit - logit_of(without, a.scale)).epsilon(1e-3).scale(0.1));
    }
  }
}

namespace {
/// Adds something to the residual stream that no part of the model wrote.
class Push final : public Tap {
 public:
  bool wants(Site site) const override { return site == Site{SiteKind::resid_mid, 1}; }
  Tensor at(Site, const Tensor& value) override {
    Tensor changed = value.copy();
    changed.ref(7, 3) += 2.5f;
    return changed;
  }
};
}  // namespace

TEST_CASE("what an edit puts into the residual stream is a part of its own, and the sum still holds") {
  ReadSubject s("gpt2-random");
  Push push;
  const auto edited = run(s.loaded, s.request, Ctx{.backend = s.backend, .tap = &push});
  const LogitAttribution a = logit_attribution(s.model(), *edited, {.token = 7});
  CHECK(a.sum() == doctest::Approx(a.logit).epsilon(1e-5).scale(10));
  // Along the direction: 2.5 · d, d read off the model's weights.
  double mean = 0;
  const Tensor &gain = s.weights.final_norm.gain, &u = s.weights.unembedding;
  for (Index i = 0; i < 32; ++i) mean += static_cast<double>(gain.at(i) * u.at(i, 7)) / 32;
  const double expected = 2.5 * a.scale * (static_cast<double>(gain.at(3) * u.at(3, 7)) - mean);
  CHECK(a.value(Kind::remainder) == doctest::Approx(expected).epsilon(1e-3));
}

TEST_CASE("a head's part is what it wrote with the singular values of W_O as edits leave them") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    ReadSubject s(folder, {5, 9, 5, 30, 9, 5, 17, 2}, {parse_intervention("1: singular o 1..4=0.25 6=-1", "test")});
    const AttributionOf of{.position = 5, .token = 11};
    const LogitAttribution a = logit_attribution(s.model(), *s.trace, of, s.request.edits);
    CHECK(a.sum() == doctest::Approx(a.logit).epsilon(1e-5).scale(10));
    CHECK(a.value(Kind::remainder) == 0);  // no part of it is left unexplained
    const std::vector<double> d = logit_direction(s.model(), *s.trace, of).d;
    const Tensor& wrote = s.site(SiteKind::result, 1);  // (query, head, d_model): of the pass itself
    for (int head = 0; head < s.dims().heads; ++head) {
      double expected = 0;
      for (Index i = 0; i < wrote.dim(2); ++i)
        expected += static_cast<double>(wrote.at(5, head, i)) * d[static_cast<std::size_t>(i)];
      CHECK(a.value(Kind::head, 1, head) == doctest::Approx(expected).epsilon(1e-3).scale(0.01));
    }
    // Only at the positions that the edit reaches.
    std::vector<Intervention> elsewhere{parse_intervention("1@0..2: singular o 1..4=0", "test")};
    const LogitAttribution plain = logit_attribution(s.model(), *s.trace, of),
                           same = logit_attribution(s.model(), *s.trace, of, elsewhere);
    CHECK(same.value(Kind::head, 1, 0) == plain.value(Kind::head, 1, 0));
    CHECK(a.value(Kind::head, 1, 0) != doctest::Approx(plain.value(Kind::head, 1, 0)));
  }
}

TEST_CASE("attribution of what is not there") {
  const ReadSubject s("gpt2-random");
  CHECK_THROWS_AS(logit_attribution(s.model(), *s.trace, {.position = 8, .token = 1}), Error);
  CHECK_THROWS_AS(logit_attribution(s.model(), *s.trace, {.position = -9, .token = 1}), Error);
  CHECK_THROWS_AS(logit_attribution(s.model(), *s.trace, {.token = 257}), Error);
  CHECK_THROWS_AS(logit_attribution(s.model(), *s.trace, {.token = 1, .against = -1}), Error);
}

}  // namespace headscope::logit_attribution_test
