#include "core/analysis/feed_forward.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/analysis/subjects.h"

namespace headscope::feed_forward_test {

using testing::ReadSubject;

TEST_CASE("activation curves by their definitions") {
  Backend backend{1};
  const auto curve = [&](Activation a) { return activation_curve(backend, a, -3, 3, 7); };
  for (std::size_t i = 0; i < 7; ++i) {
    const double x = static_cast<double>(i) - 3;
    CHECK(curve(Activation::relu).x[i] == x);
    CHECK(curve(Activation::relu).y[i] == std::max(0.0, x));
    CHECK(curve(Activation::gelu).y[i] ==
          doctest::Approx(0.5 * x * (1 + std::erf(x / std::sqrt(2.0)))).epsilon(1e-4).scale(1));
    CHECK(curve(Activation::gelu_tanh).y[i] ==
          doctest::Approx(0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x))))
              .epsilon(1e-4)
              .scale(1));
    CHECK(curve(Activation::silu).y[i] == doctest::Approx(x / (1 + std::exp(-x))).epsilon(1e-4).scale(1));
  }
  CHECK(curve(Activation::gelu).y[4] == doctest::Approx(0.841345));  // Φ(1)
}

TEST_CASE("what edits behind the neurons write is told apart from what the neurons would write") {
  ReadSubject s("gpt2-random", {5, 9, 5, 30, 9, 5, 17, 2}, {parse_intervention("1.*: switch off mlp", "edit")});
  const FeedForward f =
      read_feed_forward(s.model(), s.backend, *s.trace, 1, {.position = 5, .token = 11}, s.dims().d_mlp, 2);
  CHECK(std::abs(f.logit) > 1e-3);
  CHECK(f.edited_logit == doctest::Approx(-f.logit));  // nothing is written any more
}

TEST_CASE("neurons and the output bias sum to the MLP: as a vector, and in a logit") {
  for (const char* folder : {"gpt2-random", "gpt2-untied-erf", "llama-gqa"}) {
    CAPTURE(folder);
    ReadSubject s(folder);
    const AttributionOf of{.position = 5, .token = 11, .against = 2};
    const FeedForward f = read_feed_forward(s.model(), s.backend, *s.trace, 1, of, s.dims().d_mlp, 2);
    REQUIRE(f.neurons.size() == static_cast<std::size_t>(s.dims().d_mlp));
    const LogitAttribution whole = logit_attribution(s.model(), *s.trace, of);
    CHECK(f.logit == doctest::Approx(whole.value(AttributionPart::Kind::mlp, 1)).epsilon(1e-3).scale(0.1));
    double logits = f.bias_logit;
    const BlockWeights& block = s.weights.blocks[1];
    std::vector<double> written(static_cast<std::size_t>(s.dims().d_model), 0);
    for (const Neuron& n : f.neurons) {
      logits += n.logit;
      double square = 0;
      for (Index d = 0; d < s.dims().d_model; ++d) {
        const double part = n.post * static_cast<double>(block.down.at(n.index, d));
        written[static_cast<std::size_t>(d)] += part;
        square += part * part;
      }
      CHECK(n.norm == doctest::Approx(std::sqrt(square)).epsilon(1e-4).scale(1e-3));
    }
    CHECK(logits == doctest::Approx(f.logit));
    CHECK(std::abs(f.edited_logit) < 1e-4);  // nothing was edited
    for (Index d = 0; d < s.dims().d_model; ++d) {
      const double bias = block.down_bias.defined() ? static_cast<double>(block.down_bias.at(d)) : 0;
      CHECK(written[static_cast<std::size_t>(d)] + bias ==
            doctest::Approx(static_cast<double>(s.site(SiteKind::mlp_out, 1).at(5, d))).epsilon(1e-3).scale(1));
    }
    for (std::size_t i = 1; i < f.neurons.size(); ++i) CHECK(f.neurons[i - 1].norm >= f.neurons[i].norm);
  }
}

TEST_CASE("a neuron is its pre-activation through the activation, times the linear branch where there is one") {
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  ReadSubject s("llama-gqa");
  const FeedForward f = read_feed_forward(s.model(), s.backend, *s.trace, 0, {.position = 3, .token = 1}, 6);
  const auto x = testing::row(s.site(SiteKind::ln2_normalized, 0), 3);
  const BlockWeights& block = s.weights.blocks[0];
  const auto gate = testing::times(x, block.gate, block.gate_bias), up = testing::times(x, block.up, block.up_bias);
  for (const Neuron& n : f.neurons) {
    const auto i = static_cast<std::size_t>(n.index);
    CHECK(n.pre == doctest::Approx(gate[i]).epsilon(1e-3).scale(1));
    CHECK(n.linear == doctest::Approx(up[i]).epsilon(1e-3).scale(1));
    CHECK(n.post == doctest::Approx(silu(gate[i]) * up[i]).epsilon(1e-3).scale(1));
  }
  Index active = 0;
  for (const double p : gate) active += p > 0;
  CHECK(f.active[3] == doctest::Approx(static_cast<double>(active) / static_cast<double>(gate.size())));
  CHECK(f.ever_active >= f.active[3]);
  CHECK(f.pre.count() == static_cast<std::uint64_t>(8 * s.dims().d_mlp));
}

TEST_CASE("the tokens that a neuron raises: the difference of two is its part of that logit difference") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    ReadSubject s(folder);
    const int vocab = s.dims().vocab;
    const FeedForward all = read_feed_forward(s.model(), s.backend, *s.trace, 1, {.position = 4, .token = 3}, 3, vocab);
    for (const Neuron& n : all.neurons) {
      REQUIRE(n.raises.size() == static_cast<std::size_t>(vocab));
      const std::int32_t best = n.raises[0].id, worst = n.raises.back().id;
      const LogitDirection d = logit_direction(s.model(), *s.trace, {.position = 4, .token = best, .against = worst});
      double part = 0, mean = 0;
      for (Index j = 0; j < s.dims().d_model; ++j)
        part +=
            n.post * static_cast<double>(s.weights.blocks[1].down.at(n.index, j)) * d.d[static_cast<std::size_t>(j)];
      CHECK(static_cast<double>(n.raises[0].logit - n.raises.back().logit) ==
            doctest::Approx(part).epsilon(1e-3).scale(1e-2));
      for (const NextToken& t : n.raises) mean += static_cast<double>(t.logit);
      CHECK(mean == doctest::Approx(0).scale(1).epsilon(1e-3));  // less the mean of the vocabulary
    }
  }
}

TEST_CASE("what cannot be read is refused") {
  ReadSubject s("gpt2-random");
  CHECK_THROWS_AS(read_feed_forward(s.model(), s.backend, *s.trace, 2, {.token = 1}), Error);
  CHECK_THROWS_AS(read_feed_forward(s.model(), s.backend, *s.trace, 0, {.position = 8, .token = 1}), Error);
  CHECK_THROWS_AS(read_feed_forward(s.model(), s.backend, *s.trace, 0, {.token = 100000}), Error);
}

TEST_CASE("layers that a model does not have are refused with those it has") {
  ReadSubject s("gpt2-random");
  for (const int layer : {-1, s.dims().layers})
    CHECK_THROWS_WITH_AS(
        read_feed_forward(s.model(), s.backend, *s.trace, layer, {.token = 1}),
        doctest::Contains(
            ("a layer from 0 to " + std::to_string(s.dims().layers - 1) + ", found " + std::to_string(layer)).c_str()),
        Error);
}

}  // namespace headscope::feed_forward_test
