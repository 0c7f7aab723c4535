#include "core/metrics/repeated_tokens.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/metrics/even_head.h"
#include "tests/metrics/maps.h"

namespace headscope::repeated_tokens_test {

using namespace testing;
using doctest::Approx;

namespace {
/// Out of a whole vocabulary.
std::vector<std::int32_t> repeated(int vocab, int period, int repeats, std::optional<std::int32_t> bos,
                                   std::uint64_t seed) {
  return repeated_tokens(whole_alphabet(vocab, bos), period, repeats, bos, seed);
}
}  // namespace

TEST_CASE("repeated tokens are one block of distinct ids said again, after the BOS") {
  const auto ids = repeated(257, 32, 3, 256, 7);
  REQUIRE(ids.size() == 1 + 3 * 32);
  CHECK(ids[0] == 256);
  std::set<std::int32_t> block(ids.begin() + 1, ids.begin() + 33);
  CHECK(block.size() == 32);
  CHECK(block.count(256) == 0);
  CHECK(*block.begin() >= 0);
  for (std::size_t i = 1; i + 32 < ids.size(); ++i) REQUIRE(ids[i + 32] == ids[i]);
  CHECK(repeated(257, 32, 3, 256, 7) == ids);
  CHECK(repeated(257, 32, 3, 256, 8) != ids);
  // The sequence is the same on every machine.
  CHECK(repeated(50257, 4, 2, std::nullopt, 1) ==
        std::vector<std::int32_t>{22649, 6923, 41016, 8860, 22649, 6923, 41016, 8860});
}

TEST_CASE("a vocabulary smaller than the period is used up evenly before a token comes again") {
  const auto ids = repeated(4, 9, 2, 3, 1);  // three tokens besides the BOS
  int count[3] = {};
  for (std::size_t i = 1; i <= 9; ++i) ++count[ids[i]];
  for (const int times : count) CHECK(times == 3);
}

TEST_CASE("a BOS in the middle of the vocabulary is never drawn, and every other token can be") {
  const auto ids = repeated(5, 4, 2, 1, 3);
  CHECK(std::set<std::int32_t>(ids.begin() + 1, ids.begin() + 5) == std::set<std::int32_t>{0, 2, 3, 4});
}

TEST_CASE("repeated tokens are those of their alphabet alone") {
  const auto ids = repeated_tokens(std::vector<std::int32_t>{7, 40, 41}, 3, 2, 9, 1);
  REQUIRE(ids.size() == 7);
  CHECK(ids[0] == 9);
  CHECK(std::set<std::int32_t>(ids.begin() + 1, ids.begin() + 4) == std::set<std::int32_t>{7, 40, 41});
}

TEST_CASE("what cannot be drawn is refused") {
  CHECK_THROWS_AS(repeated(10, 0, 2, std::nullopt, 1), Error);
  CHECK_THROWS_AS(repeated(10, 5, 1, std::nullopt, 1), Error);
  CHECK_THROWS_AS(repeated(0, 5, 2, std::nullopt, 1), Error);
  CHECK_THROWS_AS(repeated(1, 5, 2, 0, 1), Error);
  CHECK_THROWS_AS(repeated_tokens({}, 5, 2, std::nullopt, 1), Error);
}

TEST_CASE("the induction scores by hand: BOS and two tokens said twice") {
  // position  0   1 2 3 4      first = 1, period 2: second block are queries 3 and 4
  const Tensor weights =
      rows_of({{1}, {0.5f, 0.5f}, {0.2f, 0.3f, 0.5f}, {0.1f, 0.2f, 0.6f, 0.1f}, {0.1f, 0.1f, 0.3f, 0.4f, 0.1f}});
  const Head head = head_of(weights, {9, 1, 2, 1, 2}, causal_rule());
  CHECK(induction_block(head.map, 2, 1) == Approx((0.6 + 0.4) / 2));  // keys 2 and 3: distance 1
  CHECK(duplicate_block(head.map, 2, 1) == Approx((0.2 + 0.3) / 2));  // keys 1 and 2: distance 2
  CHECK(induction_diagonal(head.map, 2) == Approx((0.5 + 0.3 + 0.6 + 0.4) / 4));
  CHECK(induction_block(even_head(head.map, head.text.links), 2, 1) == Approx((1.0 / 4 + 1.0 / 5) / 2));
  CHECK(std::isnan(induction_block(head.map, 4, 1)));
  // Cached tokens: the last row alone.
  const Head last = head_of(head.map.tile({4, 5}, {0, 5}), {9, 1, 2, 1, 2}, causal_rule(), 4);
  CHECK(induction_block(last.map, 2, 1) == Approx(0.4));
}

TEST_CASE("without a BOS the second block begins at its period, and the first key counts") {
  const Tensor weights = rows_of({{1}, {0.5f, 0.5f}, {0.2f, 0.3f, 0.5f}, {0.1f, 0.2f, 0.6f, 0.1f}});
  const Head head = head_of(weights, {1, 2, 1, 2}, causal_rule());
  CHECK(duplicate_block(head.map, 2, 0) == Approx((0.2 + 0.2) / 2));  // keys 0 and 1
  CHECK(induction_block(head.map, 2, 0) == Approx((0.3 + 0.6) / 2));  // keys 1 and 2
  CHECK(duplicate_block(head.map, 3, 0) == Approx(0.1));
  CHECK(std::isnan(duplicate_block(head.map, 4, 0)));
  // Every token but the BOS, which may be the first or the last.
  CHECK(whole_alphabet(4, std::nullopt) == std::vector<std::int32_t>{0, 1, 2, 3});
  CHECK(whole_alphabet(4, 0) == std::vector<std::int32_t>{1, 2, 3});
  CHECK(whole_alphabet(4, 3) == std::vector<std::int32_t>{0, 1, 2});
}

}  // namespace headscope::repeated_tokens_test
