#include "core/trace/query_rows.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/viz/sample.h"

namespace headscope::query_rows_test {

using namespace testing;

TEST_CASE("the row of one query in every head, hidden keys apart") {
  const Trace trace = sample_trace(6, 2, 3);
  const QueryRows rows = query_rows(trace, 3);
  REQUIRE(rows.heads.size() == 6);
  CHECK(rows.heads[4] == HeadId{1, 1});
  for (int r = 0; r < 6; ++r) {
    for (Index k = 0; k <= 3; ++k) CHECK(rows.weights.at(r, k) == trace.map({r / 3, r % 3}).weight(3, k));
    CHECK(std::isnan(rows.weights.at(r, 4)));
    CHECK(std::isnan(rows.weights.at(r, 5)));
  }
  CHECK_THROWS_AS(query_rows(trace, 6), Error);
  CHECK_THROWS_AS(query_rows(trace, -1), Error);
  CHECK_THROWS_AS(query_rows(empty_trace(3), 0), Error);
  // Behind a cache positions count from its end.
  const Trace behind = rectangular_trace(2, 8, 6, true);
  CHECK(query_rows(behind, 7).weights.at(0, 5) == behind.map({0, 0}).weight(1, 5));
  CHECK_THROWS_AS(query_rows(behind, 5), Error);
}

TEST_CASE("without the first key a row is what is left of it, or that divided by its sum") {
  const Trace trace = known_trace();  // row 2: 0.2, 0, 0.8
  QueryRows rows = query_rows(trace, 2);
  hide_first_key(rows, false);
  CHECK(std::isnan(rows.weights.at(0, 0)));
  CHECK(rows.weights.at(0, 2) == 0.8f);
  hide_first_key(rows, true);
  CHECK(rows.weights.at(0, 2) == doctest::Approx(1));
  QueryRows first = query_rows(trace, 0);  // nothing is left
  hide_first_key(first, true);
  CHECK(std::isnan(first.weights.at(0, 1)));
}

TEST_CASE("a difference of rows is signed, and hidden only where both are") {
  QueryRows after = query_rows(known_trace(), 1), before = query_rows(known_trace(), 1);
  CHECK(difference(after, before).weights.at(0, 1) == 0);
  CHECK(std::isnan(difference(after, before).weights.at(0, 2)));
  after.weights.ref(0, 0) = 0;
  after.weights.ref(0, 2) = 0.25f;
  const QueryRows changed = difference(after, before);
  CHECK(changed.kind == MapKind::difference);
  CHECK(changed.weights.at(0, 0) == -0.25f);
  CHECK(changed.weights.at(0, 2) == 0.25f);
  CHECK_THROWS_AS(difference(after, query_rows(sample_trace(3, 1, 2), 1)), Error);
}

TEST_CASE("in words: the sum over a word's tokens, the mean from it") {
  Trace trace = known_trace();
  WordGroups words;
  words.begin = {0, 1, 3};  // the last two tokens are one word
  const QueryRows rows = query_rows(trace, 1, &words);
  REQUIRE(rows.weights.dim(1) == 2);
  CHECK(rows.weights.at(0, 0) == doctest::Approx((0.25 + 0.2) / 2));
  CHECK(rows.weights.at(0, 1) == doctest::Approx((0.75 + 0.8) / 2));
  CHECK_THROWS_AS(query_rows(trace, 2, &words), Error);
}

}  // namespace headscope::query_rows_test
