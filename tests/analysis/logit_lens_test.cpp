#include "core/analysis/logit_lens.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/io/safetensors.h"
#include "core/model/family.h"
#include "tests/analysis/subjects.h"

namespace headscope::logit_lens_test {

using testing::ReadSubject;

TEST_CASE("the logit lens after block 0 is a model that ends there") {
  for (const char* folder : {"gpt2-random", "gpt2-untied-erf", "llama-gqa"}) {
    CAPTURE(folder);
    ReadSubject s(folder);
    // The same weights with one block only: an independent way to stop early.
    ModelConfig config = load_config(testing::reference(folder));
    const SafetensorsFile file = SafetensorsFile::open(testing::reference(folder));
    RawWeights raw = read_weights(file, config);
    config.dims.layers = 1;
    raw.layers.resize(1);
    const auto shorter = Model::build(config, raw, "one block", s.backend);
    const Tensor expected = shorter->forward(s.ctx(), s.request.ids).logits;

    const std::int32_t token = 7;
    const LogitLens lens = logit_lens(s.model(), s.ctx(), *s.trace, follow(*s.trace, token), 3);
    REQUIRE(lens.stages.size() == static_cast<std::size_t>(2 * s.dims().layers + 1));
    CHECK(lens.stages[0].name == "embedding");
    CHECK(lens.stages[1].name == "0 attn");
    CHECK(lens.stages[2].name == "0 mlp");
    for (Index position = 0; position < lens.positions; ++position) {
      double sum = 0, entropy = 0, kl = 0, final_sum = 0;
      for (Index t = 0; t < s.dims().vocab; ++t) {
        sum += std::exp(static_cast<double>(expected.at(position, t)));
        final_sum += std::exp(static_cast<double>(s.trace->logits.at(position, t)));
      }
      std::int32_t rank = 1, best = 0;
      for (Index t = 0; t < s.dims().vocab; ++t) {
        const double p = std::exp(static_cast<double>(expected.at(position, t))) / sum,
                     answer = std::exp(static_cast<double>(s.trace->logits.at(position, t))) / final_sum;
        entropy -= p * std::log(p);
        kl += answer * std::log(answer / p);
        rank += expected.at(position, t) > expected.at(position, token);
        if (expected.at(position, t) > expected.at(position, best)) best = static_cast<std::int32_t>(t);
      }
      CHECK(lens.cell(2, position)[0].id == best);
      CHECK(lens.cell(2, position)[0].probability ==
            doctest::Approx(std::exp(static_cast<double>(expected.at(position, best))) / sum).epsilon(1e-4));
      CHECK(lens.cell(2, position)[1].probability <= lens.cell(2, position)[0].probability);
      CHECK(lens.entropy.at(2, position) == doctest::Approx(entropy).epsilon(1e-4));
      CHECK(lens.kl.at(2, position) == doctest::Approx(kl).epsilon(1e-3));
      CHECK(lens.rank(2, position) == rank);
      CHECK(lens.followed_logit.at(2, position) == doctest::Approx(expected.at(position, token)).epsilon(1e-4));
      CHECK(lens.followed_probability.at(2, position) ==
            doctest::Approx(std::exp(static_cast<double>(expected.at(position, token))) / sum).epsilon(1e-4));
    }
  }
}

TEST_CASE("the last stage of the logit lens is the model's own answer") {
  for (const char* folder : {"gpt2-random", "llama-bias"}) {
    ReadSubject s(folder);
    const LogitLens lens = logit_lens(s.model(), s.ctx(), *s.trace, follow(*s.trace, -1), 4);
    const Index last = static_cast<Index>(lens.stages.size()) - 1;
    for (Index position = 0; position < lens.positions; ++position) {
      const auto top = top_next(*s.trace, 4, static_cast<int>(position));
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(lens.cell(last, position)[i].id == top[i].id);
        CHECK(lens.cell(last, position)[i].logit == top[i].logit);
        CHECK(lens.cell(last, position)[i].probability == doctest::Approx(top[i].probability));
      }
      CHECK(lens.kl.at(last, position) == 0);
    }
    // Followed: the token that comes next, and nothing at the end of the text.
    CHECK(lens.followed[0] == s.request.ids[1]);
    CHECK(lens.followed.back() == -1);
    CHECK(std::isnan(lens.followed_probability.at(0, lens.positions - 1)));
    const double loss = -std::log(static_cast<double>(lens.followed_probability.at(last, 2)));
    CHECK(loss == doctest::Approx(token_losses(*s.trace)[2]).epsilon(1e-5));
  }
}

TEST_CASE("the logit lens says what it lacks") {
  ReadSubject s("gpt2-random");
  Trace poor = *s.trace;
  poor.sites.erase({SiteKind::resid_mid, 1});
  CHECK_THROWS_WITH_AS(logit_lens(s.model(), s.ctx(), poor),
                       doctest::Contains("blocks.1.hook_resid_mid: expected a trace that recorded it"), Error);
  CHECK_THROWS_AS(logit_lens(s.model(), s.ctx(), *s.trace, follow(*s.trace, 4000)), Error);
  const std::vector<std::int32_t> few{1, 2};
  CHECK_THROWS_AS(logit_lens(s.model(), s.ctx(), *s.trace, few), Error);
}

}  // namespace headscope::logit_lens_test
