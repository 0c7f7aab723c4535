#include "core/trace/trace.h"

#include <doctest/doctest.h>

#include "core/base/error.h"

namespace headscope::trace_test {

namespace {
Trace trace_of_layers(std::initializer_list<int> layers) {
  Trace trace;
  trace.model.dims.layers = 3;
  trace.model.dims.heads = 2;
  for (const int layer : layers) {
    for (int head = 0; head < 2; ++head) {
      const Tensor weights = Tensor::full({1, 1}, 1.0f);
      trace.maps.push_back(
          AttentionMap::dense({.layer = layer, .head = head}, weights, nullptr, stats_of_weights(weights, nullptr)));
    }
  }
  return trace;
}
}  // namespace

TEST_CASE("a trace finds the map of a head, also when only some layers were recorded") {
  const Trace all = trace_of_layers({0, 1, 2});
  CHECK(&all.map({2, 1}) == &all.maps[5]);
  const Trace some = trace_of_layers({0, 2});
  CHECK(&some.map({0, 1}) == &some.maps[1]);
  CHECK(&some.map({2, 0}) == &some.maps[2]);
}

TEST_CASE("asking a trace for a head it does not hold is an error that says what it holds") {
  const Trace some = trace_of_layers({0, 2});
  CHECK_THROWS_WITH_AS(some.map({1, 0}),
                       "head 1.0: expected a recorded head of 3 layers with 2 heads, found 4 maps, from 0.0 to 2.1",
                       Error);
  CHECK_THROWS_AS(some.map({0, 2}), Error);
  CHECK_THROWS_AS(some.map({-1, 0}), Error);
  CHECK_THROWS_AS(Trace().map({0, 0}), Error);
}

}  // namespace headscope::trace_test
