// Which tokens temperature, top-k and top-p leave, on five tokens by hand.

#include "core/generate/sampling.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/error.h"

namespace headscope::sampling_test {

namespace {
/// Probabilities 0.4, 0.3, 0.15, 0.1, 0.05 in a shuffled order of ids: 2, 0, 4, 1, 3.
Tensor five() {
  const std::vector<float> values = {std::log(0.3f), std::log(0.1f), std::log(0.4f), std::log(0.05f), std::log(0.15f)};
  return Tensor::from({5}, values);
}
}  // namespace

TEST_CASE("the full vocabulary comes in order of probability, ties by id") {
  const TokenDistribution d = token_distribution(five(), {});
  CHECK(d.ids == std::vector<std::int32_t>{2, 0, 4, 1, 3});
  CHECK(d.plain[0] == doctest::Approx(0.4));
  CHECK(d.plain[4] == doctest::Approx(0.05));
  CHECK(d.kept == d.tempered);
  CHECK(d.count == 5);
  const std::vector<float> equal = {1, 2, 2, 0};
  CHECK(token_distribution(Tensor::from({4}, equal), {}).ids == std::vector<std::int32_t>{1, 2, 0, 3});
}

TEST_CASE("the most probable token is the first of equals, wherever it stands, also of numbers that lie apart") {
  for (const Index n : {1, 5, 16, 33, 1000})
    for (const Index first : {Index{0}, n / 2, n - 1}) {
      CAPTURE(n);
      CAPTURE(first);
      Tensor wide = Tensor::full({n, 3}, -2.0f);
      for (const Index id : {first, n - 1}) wide.ref(id, 1) = -1.0f;
      for (Index id = 0; id < n; ++id) wide.ref(id, 2) = 5.0f;  // another's
      CHECK(most_probable(wide.select(1, 1)) == first);
      CHECK(most_probable(wide.select(1, 1).copy()) == first);
    }
  const std::vector<float> zeros = {-1.0f, -0.0f, 0.0f};
  CHECK(most_probable(Tensor::from({3}, zeros)) == 1);
}

TEST_CASE("thousands of logits come as a sort by comparing puts them, whatever their signs, sizes and ties") {
  Random random(3);
  std::vector<float> values(5000);
  for (float& value : values)  // a thousand different ones, some subnormal, zeros of both signs
    value = std::ldexp(std::round(static_cast<float>(random.uniform() * 20 - 10)),
                       static_cast<int>(random.below(50)) - 145 * (random.below(9) == 0));
  values[7] = -0.0f;
  values[9] = 0.0f;
  values[11] = std::numeric_limits<float>::max();
  values[13] = -std::numeric_limits<float>::max();
  std::vector<std::int32_t> ids(values.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, std::greater{}, [&](std::int32_t id) { return values[static_cast<std::size_t>(id)]; });
  const Tensor logits = Tensor::from({5000}, values);
  CHECK(token_distribution(logits, {}).ids == ids);
  CHECK(most_probable(logits) == 11);
  CHECK(most_probable(logits.slice(0, 13, 5000)) ==
        ids[static_cast<std::size_t>(std::ranges::find_if(ids, [](int id) { return id >= 13; }) - ids.begin())] - 13);
}

TEST_CASE("top-k keeps the k most probable and divides by their sum") {
  const TokenDistribution d = token_distribution(five(), {.top_k = 2});
  CHECK(d.count == 2);
  CHECK(d.kept[0] == doctest::Approx(0.4 / 0.7));
  CHECK(d.kept[1] == doctest::Approx(0.3 / 0.7));
  CHECK(d.kept[2] == 0);
  CHECK(token_distribution(five(), {.top_k = 99}).count == 5);
}

TEST_CASE("top-p keeps the fewest whose shares reach p, of what top-k left") {
  // 0.4 + 0.3 = 0.7 reaches 0.6 and 0.7; 0.71 needs the third as well.
  CHECK(token_distribution(five(), {.top_p = 0.3}).count == 1);
  CHECK(token_distribution(five(), {.top_p = 0.6}).count == 2);
  CHECK(token_distribution(five(), {.top_p = 0.71}).count == 3);
  CHECK(token_distribution(five(), {.top_p = 1e-9}).count == 1);
  // Of the three of top-k the first has 0.4 / 0.85 = 0.47, the first two 0.82.
  const TokenDistribution d = token_distribution(five(), {.top_k = 3, .top_p = 0.8});
  CHECK(d.after_top_k == 3);
  CHECK(d.count == 2);
  CHECK(token_distribution(five(), {.top_k = 3, .top_p = 0.83}).count == 3);
  // Temperature comes first: τ = ½ squares 0.4, 0.3 … to 0.16, 0.09, 0.0225, 0.01, 0.0025 of 0.285.
  const TokenDistribution sharp = token_distribution(five(), {.temperature = 0.5, .top_p = 0.86});
  CHECK(sharp.tempered[0] == doctest::Approx(0.16 / 0.285));
  CHECK(sharp.count == 2);  // 0.25 / 0.285 = 0.877
}

TEST_CASE("a random number falls to the token whose stretch of the cumulative distribution holds it") {
  const TokenDistribution d = token_distribution(five(), {});
  CHECK(place_of(d, 0) == 0);
  CHECK(place_of(d, 0.39) == 0);
  CHECK(place_of(d, 0.41) == 1);
  CHECK(place_of(d, 0.69) == 1);
  CHECK(place_of(d, 0.96) == 4);
  CHECK(place_of(d, std::nextafter(1.0, 0.0)) == 4);
  CHECK(place_of(token_distribution(five(), {.top_k = 2}), 0.58) == 1);  // 0.4 / 0.7 = 0.571
}

TEST_CASE("entropy and limits of the temperature") {
  const std::vector<float> uniform = {3, 3, 3, 3};
  CHECK(entropy_of(token_distribution(Tensor::from({4}, uniform), {}).plain) == doctest::Approx(std::log(4.0)));
  const TokenDistribution greedy = token_distribution(five(), {.temperature = 0});
  CHECK(greedy.count == 1);
  CHECK(greedy.kept[0] == 1);
  CHECK(entropy_of(greedy.kept) == 0);
  const TokenDistribution hot = token_distribution(five(), {.temperature = 1000});
  CHECK(hot.tempered[4] == doctest::Approx(0.2).epsilon(0.01));
}

TEST_CASE("the numbers of a seed are known one by one") {
  Random stream(7);
  for (std::uint64_t i = 0; i < 20; ++i) CHECK(draw_of(7, i) == stream.uniform());
}

TEST_CASE("settings out of range are refused") {
  CHECK_THROWS_AS(check(SamplingSettings{.temperature = -1}, "x"), Error);
  CHECK_THROWS_AS(check(SamplingSettings{.temperature = std::nan("")}, "x"), Error);
  CHECK_THROWS_AS(check(SamplingSettings{.top_k = -1}, "x"), Error);
  CHECK_THROWS_AS(check(SamplingSettings{.top_p = 0}, "x"), Error);
  CHECK_THROWS_AS(check(SamplingSettings{.top_p = 1.1}, "x"), Error);
  CHECK_NOTHROW(check(SamplingSettings{.temperature = 0, .top_k = 0, .top_p = 1}, "x"));
}

}  // namespace headscope::sampling_test
