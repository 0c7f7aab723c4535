// Rotary positions that depend on the text's length (LongRoPE): which list holds in one text, in several at once, and
// through a cache that grows beyond the trained context.

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/generate/generation.h"
#include "core/generate/streaming.h"
#include "core/io/safetensors.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/formats/model_files.h"
#include "core/model/plain.h"
#include "tests/model/parity.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::text_length_test {

using namespace testing;

namespace {

/// 13 tokens and the six that follow; 15 were the trained context.
struct Grown {
  Subject subject{reference("families") / "phi3-longrope"};
  std::vector<std::int32_t> text, greedy;
  Grown() {
    const auto expected = SafetensorsFile::open(reference("families") / "phi3-longrope" / "expected.safetensors");
    text = expected.entry("tokens").items<std::int32_t>();
    greedy = expected.entry("greedy").items<std::int32_t>();
  }
  const Model& model() const { return *subject.loaded.model; }
  std::vector<std::int32_t> whole() const {
    std::vector<std::int32_t> all = text;
    all.insert(all.end(), greedy.begin(), greedy.end());
    return all;
  }
};

}  // namespace

TEST_CASE("a list of divisors holds up to the trained context, the other in longer texts") {
  RotaryConfig c{.base = 100};
  c.scaling = RotaryConfig::Scaling::longrope;
  c.original_context = 15;
  c.divisors = {1, 2}, c.long_divisors = {3, 5};
  const auto theta = [&](Index tokens) { return rotary_frequencies(in_text(c, tokens), 4); };
  CHECK(theta(15)[0] == doctest::Approx(1));
  CHECK(theta(15)[1] == doctest::Approx(0.1 / 2));
  CHECK(theta(16)[0] == doctest::Approx(1.0 / 3));
  CHECK(theta(16)[1] == doctest::Approx(0.1 / 5));
  CHECK(in_text(in_text(c, 16), 16) == in_text(c, 16));
  // Dynamic NTK: base · (s n/L − s + 1)^(d/(d−2)), with s = 2, n = 30, L = 15 and d = 4: 100 · 3².
  c = {.base = 100, .scaling = RotaryConfig::Scaling::dynamic, .factor = 2};
  c.original_context = 15;
  CHECK(theta(15)[1] == doctest::Approx(0.1));
  CHECK(theta(30)[1] == doctest::Approx(1 / std::sqrt(900.0)));
}

TEST_CASE("the files of Phi 3 and Phi 4 mini, old and new, by hand") {
  nlohmann::json json = {{"hidden_size", 3072},
                         {"num_hidden_layers", 2},
                         {"num_attention_heads", 24},
                         {"num_key_value_heads", 8},
                         {"intermediate_size", 8192},
                         {"vocab_size", 64},
                         {"max_position_embeddings", 131072},
                         {"original_max_position_embeddings", 4096},
                         {"partial_rotary_factor", 0.75}};
  const auto read = [&] {
    return family("phi3", "test").read_config(ConfigReader::parse(json.dump(), "config.json")).rotary;
  };
  for (const char* type : {"longrope", "su", "yarn"}) {
    json["rope_scaling"] = {
        {"type", type}, {"short_factor", std::vector<double>(48, 1.0)}, {"long_factor", std::vector<double>(48, 2.5)}};
    CAPTURE(type);
    const RotaryConfig c = read();
    CHECK(c.scaling == RotaryConfig::Scaling::longrope);
    CHECK(c.width == 96);
    CHECK(c.original_context == 4096);
    CHECK(c.magnitude == doctest::Approx(std::sqrt(1 + std::log(32.0) / std::log(4096.0))));
    CHECK(in_text(c, 4097).divisors == std::vector<double>(48, 2.5));
  }
  json["rope_scaling"]["long_factor"] = {1, 2};
  CHECK_THROWS_WITH_AS(read(), doctest::Contains("long_factor: expected a number for each of the 48 pairs that turn"),
                       Error);
}

TEST_CASE("several texts at once are turned each by its own length") {
  const Grown g;
  const Ctx ctx{*g.subject.backend};
  const std::vector<std::int32_t> longer = g.whole();
  std::vector<std::int32_t> both = g.text;
  both.insert(both.end(), longer.begin(), longer.end());
  const auto a = static_cast<Index>(g.text.size()), b = static_cast<Index>(longer.size());
  const std::vector<Index> lengths{a, b};
  const Tensor together = g.model().forward(ctx, both, nullptr, {}, true, {}, lengths).logits;
  const Tensor first = g.model().forward(ctx, g.text).logits, second = g.model().forward(ctx, longer).logits;
  CHECK(absolute(together.slice(0, 0, a), first) < 1e-5);
  CHECK(absolute(together.slice(0, a, a + b), second) < 1e-5);
  CHECK(absolute(first, second.slice(0, 0, a)) > 0.01);  // the same tokens, otherwise turned
}

TEST_CASE("a cache does not go on over the trained context, and generation reads the text again") {
  const Grown g;
  const Ctx ctx{*g.subject.backend};
  KvCache cache(g.model().config().dims, 19);
  CHECK(g.model().continues(cache, 19));
  g.model().forward(ctx, g.text, &cache);
  CHECK(g.model().continues(cache, 15));
  CHECK_FALSE(g.model().continues(cache, 16));
  cache.truncate(0);
  g.model().forward(ctx, g.whole(), &cache);
  cache.truncate(14);
  CHECK_FALSE(g.model().continues(cache, 15));  // what it holds was turned as in a long text
  CHECK(g.model().continues(cache, 16));

  Generator generator(g.subject.loaded, RunRequest{}, false);
  std::vector<std::int32_t> text = g.text;
  for (std::size_t i = 0; i < g.greedy.size(); ++i) {
    const auto step = generator.step(ctx, text, i, {.settings = {.temperature = 0}});
    CHECK(step->token == g.greedy[i]);
    CHECK(step->computed == (i == 0 || text.size() == 16 ? static_cast<int>(text.size()) : 1));
    text.push_back(step->token);
  }
  // Back to a short text.
  CHECK(generator.step(ctx, g.text, 0, {.settings = {.temperature = 0}})->token == g.greedy[0]);
}

TEST_CASE("the plain definition takes the list for the text's length") {
  const Grown g;
  const ModelFiles files = ModelFiles::open(locate_model(reference("families") / "phi3-longrope"));
  const RawWeights raw = read_weights(*files.weights, g.model().config());
  for (const std::vector<std::int32_t>& text : {g.text, g.whole()}) {
    const plain::Pass pass = plain::forward(g.model().config(), raw, text);
    const Tensor logits = g.model().forward(Ctx{*g.subject.backend}, text).logits;
    for (Index i = 0; i < logits.dim(0); ++i)
      for (Index j = 0; j < logits.dim(1); ++j)
        CHECK(static_cast<double>(logits.at(i, j)) == doctest::Approx(pass.logits.at(i, j)).epsilon(1e-4).scale(1));
  }
}

TEST_CASE("a streamed cache is told of texts that would be turned otherwise") {
  const Grown g;
  CHECK_THROWS_WITH_AS(streaming_losses(g.subject.loaded, g.whole(), CachePolicy::sinks, {.window = 8, .sinks = 2},
                                        Ctx{*g.subject.backend}),
                       doctest::Contains("a text of at most 15 tokens"), Error);
}

}  // namespace headscope::text_length_test
