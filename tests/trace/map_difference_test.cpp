#include "core/trace/map_difference.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/base/error.h"
#include "core/trace/attention_rule.h"

namespace headscope::map_difference_test {

namespace {
AttentionMap map_of(const std::vector<float>& weights, Index n, std::shared_ptr<const AttentionRule> rule) {
  Tensor t = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) t.ref(i, j) = weights[static_cast<std::size_t>(i * n + j)];
  const auto stats = stats_of_weights(t, nullptr);
  return AttentionMap::dense({}, t, std::move(rule), stats);
}
}  // namespace

TEST_CASE("the difference of two maps is signed, and masked where neither sees") {
  const AttentionMap before = map_of({1, 0, 0, .25f, .75f, 0, .5f, .25f, .25f}, 3, causal_rule());
  const AttentionMap after = map_of({.5f, .5f, 0, 1, 0, 0, .5f, .5f, 0}, 3, full_rule());
  const AttentionMap d = map_difference(after, before);
  CHECK(d.place().kind == MapKind::difference);
  const float expected[3][3] = {{-.5f, .5f, 0}, {.75f, -.75f, 0}, {0, .25f, -.25f}};
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j) {
      CHECK(d.weight(i, j) == expected[i][j]);
      CHECK_FALSE(d.masked(i, j));  // the later map sees all
    }
  const AttentionMap same = map_difference(before, before);
  CHECK(same.masked(0, 1));
  CHECK_FALSE(same.masked(2, 1));
  CHECK(same.weight(2, 1) == 0);
}

TEST_CASE("maps of different texts have no difference") {
  CHECK_THROWS_AS(map_difference(map_of({1}, 1, nullptr), map_of({1, 0, 1, 0}, 2, nullptr)), Error);
}

}  // namespace headscope::map_difference_test
