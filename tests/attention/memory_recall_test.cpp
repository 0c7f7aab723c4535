#include "core/attention/memory_recall.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "tests/support/random_tensor.h"

namespace headscope::memory_recall_test {

using testing::random_tensor;

TEST_CASE("the error of all pairs so far, by hand on two pairs of one number") {
  // θ = 0.25, η = 0, α = 0: M ← M − ½ (M k − v) k. After (1, 4): M = 2; after (1, 0): M = 1.
  const Tensor k = Tensor::full({2, 1}, 1), v = Tensor::from({2, 1}, std::vector<float>{4, 0});
  const RecallCurve curve = recall_while_learning(k, v, {0, 0.25, 0}, {});
  CHECK(curve.pairs == std::vector<double>{1, 2});
  REQUIRE(curve.error.size() == 2);
  CHECK(curve.error[0] == doctest::Approx(4.0 / 16));          // (2 − 4)² ÷ 4²
  CHECK(curve.error[1] == doctest::Approx((9.0 + 1.0) / 16));  // (1 − 4)² + (1 − 0)²
  CHECK(curve.lost_at == 0);
  // Values of nothing are no error.
  CHECK(recall_while_learning(k, Tensor::zeros({2, 1}), {0, 0.25, 0}, {}).error == std::vector<double>{0, 0});
}

TEST_CASE("points: every count up to 32, then even ratios up to the last") {
  CHECK(recall_points(3) == std::vector<Index>{1, 2, 3});
  CHECK(recall_points(32).size() == 32);
  const std::vector<Index> many = recall_points(512);
  CHECK(many.size() == 56);
  CHECK(many.back() == 512);
  CHECK(many[33] == 40);  // 32 · 16^(2 ÷ 24)
  CHECK(std::ranges::is_sorted(many));
  CHECK(recall_points(33).back() == 33);
  CHECK(recall_points(33).size() == 33);
}

TEST_CASE("parity: of no use to a matrix, learnt by one hidden layer and by two at the same rates") {
  const TaughtPairs pairs = parity_pairs(512, 1);
  for (Index i = 0; i < 512; ++i) {
    double product = 8;
    for (Index c = 0; c < 3; ++c) product *= static_cast<double>(pairs.k.at(i, c));
    CHECK(std::abs(pairs.k.at(i, 3)) == 0.5f);
    CHECK(pairs.v.at(i, 0) == doctest::Approx(product));
  }
  for (const std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    const MemoryRates rates{0.3, 0.02, 0};
    const double linear = recall_while_learning(pairs.k, pairs.v, rates, {}).error.back(),
                 one = recall_while_learning(pairs.k, pairs.v, rates, {32, seed, 1}).error.back(),
                 two = recall_while_learning(pairs.k, pairs.v, rates, {32, seed, 2}).error.back();
    CHECK(linear > 0.9);
    CHECK(one < 0.5);
    CHECK(two < 0.1);
  }
}

TEST_CASE("a line ends where the memory has grown beyond ten times saying nothing, and a stop is heard") {
  const Tensor k = Tensor::full({40, 2}, 1), v = random_tensor({40, 2}, 1);
  const RecallCurve wild = recall_while_learning(k, v, {0.9, 1, 0}, {});
  CHECK(wild.lost_at > 0);
  CHECK(wild.lost_at <= 40);
  CHECK(wild.pairs.size() == static_cast<std::size_t>(wild.lost_at - 1));
  for (const double each : wild.error) CHECK(each <= most_recall_error);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(recall_while_learning(k, v, {0, 0.1, 0}, {}, stop.get_token()), Cancelled);
}

}  // namespace headscope::memory_recall_test
