// Metrics, classes and differences of attention between two texts, worked out by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/io/trace_file.h"
#include "core/metrics/detector.h"
#include "core/metrics/head_class.h"
#include "core/metrics/metric.h"
#include "core/metrics/rollout.h"
#include "core/metrics/trace_difference.h"
#include "core/trace/query_rows.h"
#include "core/trace/words.h"
#include "tests/metrics/classes.h"
#include "tests/support/paths.h"

namespace headscope::between_texts_test {

namespace {
std::shared_ptr<const Trace> cross() {
  // Head 0: rows [1, 0], [½, ½], [¼, ¾]; head 1: every row [0, 1].
  return open_trace(testing::reference("attention") / "cross.npz");
}

/// Of the two keys the first is punctuation and the second a separator, say.
TextMarks marks_of(const Trace& trace) {
  TextMarks text = TextMarks::of(trace.ids());
  text.links.punctuation = {0};
  text.links.separators = {1};
  return text;
}
double value(const Trace& trace, const char* id, int head) {
  return metric(id).value({trace.map({0, head}), marks_of(trace)});
}
double chance(const Trace& trace, const char* id, int head) {
  return metric(id).chance({trace.map({0, head}), marks_of(trace)});
}
}  // namespace

TEST_CASE("what asks for single rows and columns is measured between two texts") {
  const auto trace = cross();
  const double ln2 = std::log(2.0), last = 0.25 * std::log(4.0) + 0.75 * std::log(4.0 / 3);
  CHECK(value(*trace, "entropy", 0) == doctest::Approx((0 + ln2 + last) / 3));
  CHECK(value(*trace, "entropy_normalized", 0) == doctest::Approx((0 + ln2 + last) / 3 / ln2));
  CHECK(value(*trace, "max_weight", 0) == doctest::Approx((1 + 0.5 + 0.75) / 3));
  // Within one text the first query can only look at key 0 and does not count; here it counts.
  CHECK(value(*trace, "sink", 0) == doctest::Approx((1 + 0.5 + 0.25) / 3));
  CHECK(chance(*trace, "sink", 0) == doctest::Approx(0.5));
  CHECK(value(*trace, "sink_first_k", 0) == doctest::Approx(1));  // there are but two keys
  CHECK(value(*trace, "column_mass", 0) == doctest::Approx((1 + 0.5 + 0.25) / 3));
  CHECK(value(*trace, "column_mass", 1) == doctest::Approx(1));
  CHECK(value(*trace, "punctuation", 0) == doctest::Approx((1 + 0.5 + 0.25) / 3));
  CHECK(value(*trace, "separator", 0) == doctest::Approx((0 + 0.5 + 0.75) / 3));
  CHECK(chance(*trace, "separator", 0) == doctest::Approx(0.5));
  CHECK(value(*trace, "row_mass", 1) == doctest::Approx(1));
  CHECK(value(*trace, "effective_tokens", 1) == doctest::Approx(1));
}

TEST_CASE("what compares places says nothing between two texts, and why") {
  const auto trace = cross();
  int silent = 0;
  for (const Metric& each : metrics()) {
    CAPTURE(each.id);
    const std::string why = why_silent(each, trace->maps.front());
    CHECK(std::isnan(value(*trace, each.id.data(), 0)) == !why.empty());
    if (why.empty()) continue;
    ++silent;
    CHECK(why.find("compares places within one text; queries and keys of this map are of two.") != std::string::npos);
    CHECK(std::isnan(chance(*trace, each.id.data(), 0)));
    // The same weights within one text are measured.
    CHECK(each.one_text);
  }
  CHECK(silent == 18);
  const HeadTable table = head_table(*trace);
  CHECK(table.value.size() == 2);
  for (const AttentionMap& map : trace->maps)
    for (const HeadVerdict& verdict :
         testing::classes_of({map, TextMarks::of(trace->ids())}, default_class_rules()).met)
      CHECK_FALSE(metric(verdict.rule->metric).one_text);
}

TEST_CASE("rows of all heads, and differences that pair queries and keys apart") {
  const auto trace = cross();
  const QueryRows rows = query_rows(*trace, 2);
  CHECK(rows.weights.at(0, 1) == 0.75f);
  CHECK_THROWS_WITH_AS(query_rows(*trace, 3), doctest::Contains("a position from 0 to 2"), Error);

  CHECK(align_traces(*trace, *trace) == std::vector<int>{0, 1});
  CHECK(align_queries(*trace, *trace) == std::vector<int>{0, 1, 2});
  auto other = std::make_shared<Trace>(*trace);
  std::swap(other->maps[0], other->maps[1]);
  const auto place = [](int head) { return AttentionMap::Place{.head = head, .between_texts = true}; };
  for (int h = 0; h < 2; ++h) {
    const Tensor weights = trace->maps[static_cast<std::size_t>(1 - h)].to_dense();
    other->maps[static_cast<std::size_t>(h)] =
        AttentionMap::dense(place(h), weights, nullptr, stats_of_weights(weights, nullptr));
  }
  // Head 0 against head 1: ½ Σ|a − b| of the rows is 1, ½, ¼.
  const auto found = head_differences(*trace, *other, align_traces(*trace, *other));
  REQUIRE(found.size() == 2);
  CHECK(found[0].rows == 3);
  CHECK(found[0].total_variation == doctest::Approx((1 + 0.5 + 0.25) / 3));
  const auto one = open_trace(testing::reference("npz") / "attention.npz");
  CHECK_THROWS_WITH_AS(head_differences(*trace, *one, align_traces(*trace, *one)),
                       doctest::Contains("within one text in both, or between two texts in both"), Error);
}

TEST_CASE("what follows attention through one text is refused in a sentence") {
  const auto trace = cross();
  CHECK_THROWS_WITH_AS(mixing_matrices(*trace, 0.5), doctest::Contains("found queries and keys of two texts"), Error);
  CHECK_THROWS_WITH_AS(detect_all(*trace, no_cells(2)), doctest::Contains("queries and keys of two texts"), Error);
  CHECK_THROWS_WITH_AS(in_words(*trace), doctest::Contains("queries and keys of two texts"), Error);
}

}  // namespace headscope::between_texts_test
