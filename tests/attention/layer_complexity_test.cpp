#include "core/attention/layer_complexity.h"

#include <doctest/doctest.h>

#include "core/attention/mechanism.h"

namespace headscope::layer_complexity_test {

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

TEST_CASE("a cell's page has its own row first, and its cost says the same") {
  CHECK(layers_beside("rnn", 10, 4).front().multiply_adds == 2 * 10 * 16);
  CHECK(layers_beside("lstm", 10, 4).front().multiply_adds == 8 * 10 * 16);
  CHECK(layers_beside("softmax", 10, 4).front().multiply_adds == 2 * 100 * 4);
  CHECK(layers_beside("linear", 10, 4).empty());
  for (const char* id : {"rnn", "lstm", "softmax"}) {
    CAPTURE(id);
    const Mechanism& m = *find_mechanism(id);
    CHECK(layers_beside(id, 10, 4).size() == 3);
    CHECK(m.cost({10, 4, 4}, m.usual()).multiply_adds == layers_beside(id, 10, 4).front().multiply_adds);
  }
}

TEST_CASE("beside attention an RNN's products are of input and state, beside cells attention's rows are all pairs") {
  const auto beside = layers_beside("softmax", 10, 4);
  CHECK(beside[1].name == "RNN");
  CHECK(beside[1].multiply_adds == 2 * 10 * 16);
  CHECK(beside[2].multiply_adds == 3 * 10 * 16);
  CHECK(layers_beside("rnn", 10, 4)[1].multiply_adds == 2 * 100 * 4);
  CHECK(layers_beside("lstm", 10, 4)[2].multiply_adds == 3 * 10 * 16);
}

}  // namespace headscope::layer_complexity_test
