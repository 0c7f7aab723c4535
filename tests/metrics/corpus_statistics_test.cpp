// Classes of heads over many passages: by the same evidence as those of one text.

#include "core/metrics/corpus_statistics.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/thread_pool.h"
#include "tests/metrics/maps.h"

namespace headscope::corpus_statistics_test {

using namespace testing;
using doctest::Approx;

namespace {

/// A text of four tokens, and a head that looks at the one before.
Trace passage() {
  Trace trace;
  for (std::int32_t id = 1; id <= 4; ++id) {
    Token token;
    token.id = id;
    trace.tokens.push_back(token);
  }
  const Tensor weights = rows_of({{1}, {1, 0}, {0, 1, 0}, {0, 0, 1, 0}});
  trace.maps.push_back(head_of(weights, trace.ids(), causal_rule()).map);
  return trace;
}

}  // namespace

TEST_CASE("a head has a class over a corpus once its rows are evidence enough, as in one text") {
  const auto& rules = default_class_rules();
  const auto column = static_cast<std::size_t>(&metric("previous_token") - metrics().data());
  const Trace trace = passage();
  ThreadPool pool(1);
  CorpusStatistics all(1, 1, 4);
  for (int passages = 1; passages <= 3; ++passages) {
    CAPTURE(passages);
    all.add(trace, {passages - 1, 0, 0, 0, 10}, pool);
    // Chance on the rows that have a choice: 1/2, 1/3, 1/4. The margin is the same whatever the number of passages.
    CHECK(class_margin(rules.front(), all.of(0, column).mean(), all.chance(column).mean()) == Approx(0.5 / (13. / 36)));
    const RowEvidence rows = all.parts().cells[column].rows.evidence();
    CHECK(rows.rows == 3 * passages);
    CHECK(rows.score == Approx(3 * passages));
    CHECK(rows.chance == Approx(13. / 12 * passages).epsilon(1e-5));
    CHECK(rows.p() == Approx(std::pow(13. / 36, 3 * passages)).epsilon(1e-4));
    // 3 rows are too few; 6 are enough rows, but of chance one in 450 does as well; 9 are sure.
    const ClassRule* found = all.class_of(0, rules);
    CHECK((found ? found->id : "") == (passages == 3 ? "previous_token" : ""));
  }
  // Added up of parts it is the same.
  CorpusStatistics first(1, 1, 4), second(1, 1, 4);
  first.add(trace, {0, 0, 0, 0, 10}, pool);
  second.add(trace, {1, 0, 0, 0, 10}, pool);
  CHECK(first.class_of(0, rules) == nullptr);
  first.merge(second);
  CorpusStatistics third(1, 1, 4);
  third.add(trace, {2, 0, 0, 0, 10}, pool);
  first.merge(third);
  CHECK(first == all);
}

TEST_CASE("a metric that takes the best of several needs more rows, and of many texts all its choices count") {
  // Of four candidates in each of two texts there are sixteen ways to be best.
  RowEvidence rows{10, 10, 5, std::log(4.) + std::log(4.)};
  CHECK(rows.p() == Approx(16 * std::pow(0.5, 10)));
  CHECK_FALSE(rows.enough_for(default_class_rules().front()));
  rows = {20, 20, 10, std::log(16.)};
  CHECK(rows.p() == Approx(16 * std::pow(0.5, 20)));
  CHECK(rows.enough_for(default_class_rules().front()));
  rows = {10'000, 10'000, 5000, 0};  // far below what a number can hold
  CHECK(rows.p() == 0);
  rows = {4, 4, 1e-9, 0};  // four rows are none, however sure
  CHECK_FALSE(rows.enough_for(default_class_rules().front()));
  rows = {5, 0, 0, 0};  // of whole rows nothing is known of chance
  CHECK(std::isnan(rows.p()));
  CHECK(rows.enough_for(default_class_rules().front()));
}

TEST_CASE("typical passages: the six nearest to the median, of equally far ones the earlier") {
  // Two tokens, of which the second looks back by so much: "previous_token" is that number.
  const auto looking = [](float back) {
    Trace trace;
    trace.tokens.resize(2);
    trace.tokens[1].id = 1;
    const Tensor weights = rows_of({{1}, {back, 1 - back}});
    trace.maps.push_back(head_of(weights, trace.ids(), causal_rule()).map);
    return trace;
  };
  const auto column = static_cast<std::size_t>(&metric("previous_token") - metrics().data());
  ThreadPool pool(1);
  CorpusStatistics all(1, 1, 4);
  // In eighths, of which the median is 4.
  const float values[] = {8, 6, 5, 4, 3, 2, 0, 4, 7};
  for (int i = 0; i < 9; ++i) all.add(looking(values[i] / 8), {i, 0, 0, 0, 10}, pool);
  CHECK(all.of(0, column).quantile(0.5) == 0.5);
  const auto typical = all.typical(0, column);
  REQUIRE(typical.size() == CorpusStatistics::examples);
  std::vector<std::int64_t> pieces;
  for (const CorpusExample& example : typical) pieces.push_back(example.place.piece);
  CHECK(pieces == std::vector<std::int64_t>{3, 7, 2, 4, 1, 5});
  // Of fewer passages all.
  CorpusStatistics few(1, 1, 4);
  for (int i = 0; i < 6; ++i) few.add(looking(values[i] / 8), {i, 0, 0, 0, 10}, pool);
  CHECK(few.typical(0, column).size() == 6);
}

TEST_CASE("the range of a metric: its own ends, else ln n nats, n tokens, or 2") {
  const auto of = [](const char* id, int window) { return CorpusStatistics::range_of(metric(id), window, false); };
  CHECK(of("previous_token", 16).low == 0);
  CHECK(of("previous_token", 16).high == 1);
  bool nats = false, tokens = false;
  for (const Metric& each : metrics()) {
    const Distribution::Range range = CorpusStatistics::range_of(each, 16, true);
    CHECK(range.fine == (each.unit == "tokens"));
    const double end = each.unit == "nats" ? std::log(16.0) : each.unit == "tokens" ? 16 : 2;
    CHECK(range.high == (std::isfinite(each.high) ? each.high : end));
    CHECK(range.low == (std::isfinite(each.low) ? each.low : -end));
    nats |= each.unit == "nats" && !std::isfinite(each.high);
    tokens |= each.unit == "tokens" && !std::isfinite(each.high);
    // A window of one token is taken for two: no range is empty.
    CHECK(CorpusStatistics::range_of(each, 1, false).high == CorpusStatistics::range_of(each, 2, false).high);
  }
  CHECK(nats);
  CHECK(tokens);
}

TEST_CASE("an example names the row that shows most of a metric, and the one that shows least") {
  Trace trace;
  trace.tokens.resize(4);
  for (std::size_t i = 0; i < 4; ++i) trace.tokens[i].id = static_cast<std::int32_t>(i);
  // What each row gives to the token before it: –, ½, 1, ¼.
  const Tensor weights = rows_of({{1}, {0.5f, 0.5f}, {0, 1, 0}, {0, 0, 0.25f, 0.75f}});
  trace.maps.push_back(head_of(weights, trace.ids(), causal_rule()).map);
  ThreadPool pool(1);
  CorpusStatistics all(1, 1, 4);
  all.add(trace, {0, 0, 0, 0, 10}, pool);
  const auto column = static_cast<std::size_t>(&metric("previous_token") - metrics().data());
  const auto parts = all.parts();
  REQUIRE(parts.cells[column].highest.size() == 1);
  CHECK(parts.cells[column].highest[0].query == 2);
  CHECK(parts.cells[column].lowest[0].query == 3);
}

}  // namespace headscope::corpus_statistics_test
