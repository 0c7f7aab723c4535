#include "core/attention/layer_complexity.h"

#include <doctest/doctest.h>

#include "tests/attention/mechanisms/input.h"

using namespace headscope;

TEST_CASE("the table of layers against a count of every product and every hop") {
  for (const Index n : {1, 2, 3, 4, 9, 10, 27, 28, 100}) {
    CAPTURE(n);
    constexpr Index d = 5;
    double pairs = 0, recurrent = 0, convolution = 0;
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) pairs += d + d;  // q·k, then its share of v
      recurrent += d * d + d * d;                    // the input, and the state
      for (Index k = 0; k < 3; ++k) convolution += d * d;
    }
    CHECK(self_attention_layer(n, d).multiply_adds == pairs);
    CHECK(recurrent_layer("RNN", n, d, 2).multiply_adds == recurrent);
    CHECK(convolution_layer(n, d).multiply_adds == convolution);
    CHECK(self_attention_layer(n, d).sequential == 1);
    CHECK(recurrent_layer("RNN", n, d, 2).sequential == static_cast<double>(n));
    CHECK(recurrent_layer("RNN", n, d, 2).longest_path == static_cast<double>(n - 1));
    // Layers until the last token's cone of sight, three times as wide each time, reaches the first.
    double layers = 0;
    for (double seen = 1; seen < static_cast<double>(n); seen *= 3) ++layers;
    CHECK(convolution_layer(n, d).longest_path == layers);
  }
  CHECK(convolution_layer(27, 4).longest_path == 3);
  CHECK(convolution_layer(28, 4).longest_path == 4);
}

TEST_CASE("a cell's page has its own row first, and the facts carry the same numbers") {
  CHECK(layers_beside("rnn", 10, 4).front().multiply_adds == 2 * 10 * 16);
  CHECK(layers_beside("lstm", 10, 4).front().multiply_adds == 8 * 10 * 16);
  CHECK(layers_beside("softmax", 10, 4).front().multiply_adds == 2 * 100 * 4);
  CHECK(layers_beside("linear", 10, 4).empty());
  const MechanismInput in = headscope::testing::random_head(10, 10, 4, 4, "causal");
  const MechanismResult lstm = headscope::testing::run("lstm", in, Detail::steps);
  REQUIRE(lstm.facts.size() == 3);
  CHECK(lstm.facts[0].value == "1.28e+03; attention 800, convolution 480");
  CHECK(lstm.facts[1].value == "10; attention 1, convolution 1");
  CHECK(lstm.facts[2].value == "9; attention 1, convolution 3");
  // The page's cost says the same.
  CHECK(find_mechanism("lstm")->cost({10, 4, 4}, find_mechanism("lstm")->usual()).multiply_adds == 1280);
}
