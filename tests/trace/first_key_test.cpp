#include "core/trace/first_key.h"

#include <doctest/doctest.h>

#include <vector>

namespace headscope::first_key_test {

TEST_CASE("without its first key a map keeps the other weights, or shares them out anew") {
  const Tensor weights = Tensor::from({3, 3}, std::vector<float>{1, 0, 0, 0.75f, 0.25f, 0, 0.5f, 0.2f, 0.3f});
  const AttentionMap map = AttentionMap::dense({}, weights, causal_rule(), stats_of_weights(weights, nullptr));
  const AttentionMap hidden = without_first_key(map, false), shared = without_first_key(map, true);
  CHECK(hidden.masked(2, 0));
  CHECK_FALSE(hidden.masked(2, 1));
  CHECK(hidden.masked(1, 2));
  CHECK(hidden.weight(2, 0) == 0);
  CHECK(hidden.weight(2, 2) == 0.3f);
  CHECK(shared.weight(1, 1) == doctest::Approx(1));
  CHECK(shared.weight(2, 1) == doctest::Approx(0.4));
  CHECK(shared.weight(2, 2) == doctest::Approx(0.6));
  CHECK(shared.weight(0, 0) == 0);  // nothing was left
  CHECK(shared.stats().max_weight[2] == doctest::Approx(0.6));
}

}  // namespace headscope::first_key_test
