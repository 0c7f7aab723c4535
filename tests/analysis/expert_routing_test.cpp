// Which expert took which token: numbers worked out by hand, and a sentence for models that have none.

#include "core/analysis/expert_routing.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/train/parameters.h"
#include "tests/analysis/subjects.h"

namespace headscope::expert_routing_test {

using namespace testing;

TEST_CASE("loads, weights, how many experts are used and their balance, by hand") {
  const ReadSubject s("families/mixtral");
  const int experts = s.model().config().experts.count;
  REQUIRE(experts == 5);
  REQUIRE(s.model().config().experts.per_token == 2);
  Trace trace = *s.trace;
  // Three tokens: (0: ¾, 1: ¼), (0: ½, 1: ½), (1: 0.9, 2: 0.1).
  Tensor weights = Tensor::zeros({3, 5}), logits = Tensor::zeros({3, 5});
  weights.ref(0, 0) = 0.75f, weights.ref(0, 1) = 0.25f;
  weights.ref(1, 0) = 0.5f, weights.ref(1, 1) = 0.5f;
  weights.ref(2, 1) = 0.9f, weights.ref(2, 2) = 0.1f;
  for (Index token = 0; token < 3; ++token)  // softmax: .4 .3 .1 .1 .1
    for (Index e = 0; e < 5; ++e) logits.ref(token, e) = std::log(e == 0 ? 4.0f : e == 1 ? 3.0f : 1.0f);
  for (int layer = 0; layer < s.dims().layers; ++layer) {
    trace.sites[{SiteKind::router_weights, layer}] = weights;
    trace.sites[{SiteKind::router_logits, layer}] = logits;
  }
  const RoutingReport report = read_expert_routing(s.model(), trace);
  CHECK(report.experts == 5);
  CHECK(report.chance == doctest::Approx(0.2));
  REQUIRE(report.layers.size() == static_cast<std::size_t>(s.dims().layers));
  const ExpertRouting& r = report.layers[1];
  CHECK(r.layer == 1);
  CHECK(r.tokens == std::vector<Index>{2, 3, 1, 0, 0});
  const double load[] = {2.0 / 6, 3.0 / 6, 1.0 / 6, 0, 0}, weight[] = {1.25 / 3, 1.65 / 3, 0.1 / 3, 0, 0};
  for (std::size_t e = 0; e < 5; ++e) {
    CHECK(r.load[e] == doctest::Approx(load[e]));
    CHECK(r.weight[e] == doctest::Approx(weight[e]).epsilon(1e-6));
  }
  CHECK(r.used == doctest::Approx(std::exp(std::log(3.0) / 3 + std::log(2.0) / 2 + std::log(6.0) / 6)));
  CHECK(r.balance == doctest::Approx(5 * (0.4 * 2 / 6 + 0.3 * 3 / 6 + 0.1 / 6)).epsilon(1e-6));
  CHECK(experts_of(r, 0) == std::vector<Index>{0, 1});
  CHECK(experts_of(r, 1) == std::vector<Index>{0, 1});
  CHECK(experts_of(r, 2) == std::vector<Index>{1, 2});
  // Room for ⌈6/5⌉ = 2 each: expert 1 has none for its third. For ⌈0.6⌉ = 1: of token 1 nothing is left.
  using Places = std::vector<std::pair<Index, Index>>;
  CHECK(dropped_tokens(r, 1).capacity == 2);
  // 1.1 · 100 places ÷ 10 experts is 11, though doubles say a little more.
  ExpertRouting many;
  many.weights = Tensor::full({50, 10}, 1);
  many.tokens.assign(10, 10);
  CHECK(dropped_tokens(many, 1.1).capacity == 11);
  CHECK(dropped_tokens(r, 1).places == Places{{2, 1}});
  CHECK(dropped_tokens(r, 1).whole == 0);
  CHECK(dropped_tokens(r, 0.5).capacity == 1);
  CHECK(dropped_tokens(r, 0.5).places == Places{{1, 0}, {1, 1}, {2, 1}});
  CHECK(dropped_tokens(r, 0.5).whole == 1);
  CHECK(dropped_tokens(r, 4).places.empty());
}

TEST_CASE("experts that two tokens have in common, by hand: of the same token, of neighbours, of any two") {
  // Tokens a b a c, two experts of four each: {0,1} {1,2} {0,2} {2,3}.
  Tensor weights = Tensor::zeros({4, 4});
  const int took[4][2] = {{0, 1}, {1, 2}, {0, 2}, {2, 3}};
  for (Index i = 0; i < 4; ++i)
    for (const int e : took[i]) weights.ref(i, e) = 0.5f;
  const std::int32_t ids[] = {7, 8, 7, 9};
  const SharedExperts shared = shared_experts(weights, ids);
  CHECK(shared.same_pairs == 1);
  CHECK(shared.same == doctest::Approx(1.0 / 2));                // expert 0
  CHECK(shared.next == doctest::Approx((1 + 1 + 1) / 3.0 / 2));  // 1, 2, 2
  CHECK(shared.any == doctest::Approx((1 + 1 + 0 + 1 + 1 + 1) / 6.0 / 2));
  const std::int32_t others[] = {7, 8, 5, 9};
  CHECK(std::isnan(shared_experts(weights, others).same));
}

TEST_CASE("of a real pass every token is taken by as many experts as the model says, in the layers that have some") {
  for (const char* name : {"mixtral", "qwen3_moe", "olmoe", "gpt_oss"}) {
    CAPTURE(name);
    const ReadSubject s(std::string("families/") + name);
    const ExpertConfig& c = s.model().config().experts;
    const RoutingReport report = read_expert_routing(s.model(), *s.trace);
    std::size_t sparse = 0;
    for (int layer = 0; layer < s.dims().layers; ++layer) sparse += c.at(layer);
    CHECK(report.layers.size() == sparse);
    for (const ExpertRouting& r : report.layers) {
      double sum = 0;
      for (const double load : r.load) sum += load;
      CHECK(sum == doctest::Approx(1));
      CHECK(r.used <= report.experts + 1e-9);
      for (Index token = 0; token < r.weights.dim(0); ++token) {
        const auto taken = experts_of(r, token);
        CHECK(static_cast<int>(taken.size()) == c.per_token);
        double all = 0;
        for (const Index e : taken) all += static_cast<double>(r.weights.at(token, e));
        const bool whole = c.renormalized || c.score == RouterScore::softmax_of_chosen;
        if (c.score == RouterScore::near_best)  // a softmax for each
          for (const Index e : taken) CHECK(static_cast<double>(r.weights.at(token, e)) <= c.scale + 1e-6);
        else if (c.score != RouterScore::sigmoid)
          CHECK(all <= c.scale + 1e-6);
        if (whole) CHECK(all == doctest::Approx(c.scale).epsilon(1e-6));
      }
    }
  }
  const ReadSubject dense("families/mistral");
  CHECK_THROWS_WITH_AS(read_expert_routing(dense.model(), *dense.trace), doctest::Contains("one MLP in each layer"),
                       Error);
}

TEST_CASE("models without experts are told apart: those with one MLP, and those with none") {
  const ReadSubject one("gpt2-random");
  CHECK_THROWS_WITH_AS(expert_routing_sites(one.model()),
                       doctest::Contains("found one MLP in each layer, for every token"), Error);
  Backend backend{1};
  ModelConfig config;
  config.name = "bare", config.family = "gpt2", config.context = 4;
  config.dims = {.layers = 1, .heads = 1, .kv_heads = 1, .d_head = 4, .d_model = 4, .d_mlp = 0, .vocab = 7};
  const auto none = Parameters::initial(config, 1).trainable_model(backend);
  CHECK_THROWS_WITH_AS(expert_routing_sites(*none), doctest::Contains("found layers without an MLP"), Error);
}

}  // namespace headscope::expert_routing_test
