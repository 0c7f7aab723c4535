#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/metrics/even_head.h"
#include "core/metrics/head_class.h"
#include "core/metrics/mass.h"
#include "core/metrics/repeated_tokens.h"
#include "tests/metrics/classes.h"
#include "tests/metrics/maps.h"
#include "tests/support/word_metrics.h"

namespace headscope::metrics_test {

using namespace testing;
using doctest::Approx;

namespace {

//         key 0    1    2
// query 0   1
//       1   .25  .75
//       2   .5   .25  .25       tokens 7 8 7: query 2 repeats key 0, and key 1 followed it
Head three() {
  return head_of(rows_of({{1}, {0.25f, 0.75f}, {0.5f, 0.25f, 0.25f}}), {7, 8, 7}, causal_rule());
}

}  // namespace

TEST_CASE("every metric on three tokens, by hand") {
  const Head head = three();
  const double h1 = 0.5623351446, h2 = 1.0397207708;  // −.25 ln .25 − .75 ln .75, and −.5 ln .5 − 2 · .25 ln .25
  CHECK(head.value("entropy") == Approx((0 + h1 + h2) / 3));
  CHECK(head.value("entropy_normalized") == Approx((h1 / std::log(2.0) + h2 / std::log(3.0)) / 2));
  // Query 0 has nothing left, query 1 one key (0 nats), query 2 two equal ones (ln 2).
  CHECK(head.value("entropy_without_sink") == Approx(std::log(2.0) / 2));
  CHECK(head.value("effective_tokens") == Approx((1 + 1.7547653506 + 2.8284271247) / 3));
  CHECK(head.value("max_weight") == Approx((1 + 0.75 + 0.5) / 3));
  CHECK(head.value("sink") == Approx((0.25 + 0.5) / 2));
  CHECK(std::isnan(head.value("sink_first_k")));
  CHECK(head.value("mean_distance") == Approx((0 + 0.25 * 1 + 0.5 * 2 + 0.25 * 1) / 3));
  CHECK(head.value("self_attention") == Approx((1 + 0.75 + 0.25) / 3));
  CHECK(head.value("previous_token") == Approx((0.25 + 0.25) / 2));
  CHECK(std::isnan(head.value("fixed_offset")));  // one row has a key two back: no evidence of an offset
  CHECK(std::isnan(head.value("fixed_offset_at")));
  CHECK(std::isnan(head.value("local")));
  CHECK(head.value("duplicate_token") == Approx(0.5));
  CHECK(head.value("prefix_matching") == Approx(0.25));
  CHECK(head.value("row_mass") == Approx(1));
  CHECK(head.value("column_mass") == Approx((1 + 0.25 + 0.5) / 3));
}

TEST_CASE("every chance level on three tokens, by hand: rows 1 | ½ ½ | ⅓ ⅓ ⅓") {
  const Head head = three();
  CHECK(head.chance("entropy") == Approx((0 + std::log(2.0) + std::log(3.0)) / 3));
  CHECK(head.chance("entropy_normalized") == Approx(1));
  CHECK(head.chance("entropy_without_sink") == Approx((0 + std::log(2.0)) / 2));
  CHECK(head.chance("effective_tokens") == Approx((1.0 + 2 + 3) / 3));
  CHECK(head.chance("max_weight") == Approx((1 + 1.0 / 2 + 1.0 / 3) / 3));
  CHECK(head.chance("sink") == Approx((1.0 / 2 + 1.0 / 3) / 2));
  CHECK(std::isnan(head.chance("sink_first_k")));
  CHECK(head.chance("mean_distance") == Approx((0 + 0.5 + (2 + 1) / 3.0) / 3));
  CHECK(head.chance("self_attention") == Approx((1 + 1.0 / 2 + 1.0 / 3) / 3));
  CHECK(head.chance("previous_token") == Approx((1.0 / 2 + 1.0 / 3) / 2));
  CHECK(std::isnan(head.chance("fixed_offset_at")));
  CHECK(head.chance("duplicate_token") == Approx(1.0 / 3));
  CHECK(head.chance("prefix_matching") == Approx(1.0 / 3));
  CHECK(head.chance("row_mass") == Approx(1));
  CHECK(head.chance("column_mass") == Approx((1 + 1.0 / 2 + 1.0 / 3) / 3));
}

TEST_CASE("metrics that need more tokens, on six, by hand") {
  const Head head = head_of(rows_of({{1},
                                     {0.5f, 0.5f},
                                     {0.6f, 0.2f, 0.2f},
                                     {0.1f, 0.7f, 0.1f, 0.1f},
                                     {0.1f, 0.1f, 0.5f, 0.2f, 0.1f},
                                     {0.1f, 0.2f, 0.2f, 0.3f, 0.1f, 0.1f}}),
                            {1, 2, 3, 4, 5, 6}, causal_rule());
  // Distance 2: queries 2 to 5 give .6 .7 .5 .3. Distance 3: .1 .1 .2 on three of six queries. Farther: too few
  // queries.
  CHECK(head.value("fixed_offset") == Approx((0.6 + 0.7 + 0.5 + 0.3) / 4));
  CHECK(head.value("fixed_offset_at") == 2);
  // Even head: distance 2 gives 1/3 1/4 1/5 1/6, distance 3 gives 1/4 1/5 1/6, which is less.
  CHECK(head.chance("fixed_offset") == Approx((1.0 / 3 + 1.0 / 4 + 1.0 / 5 + 1.0 / 6) / 4));
  CHECK(head.value("sink_first_k") == Approx((0.1 + 0.1 + 0.5 + 0.2 + 0.1 + 0.2 + 0.2 + 0.3) / 2));
  CHECK(head.chance("sink_first_k") == Approx((4.0 / 5 + 4.0 / 6) / 2));
  CHECK(head.value("local") == Approx(0.9));  // only query 5 sees a key more than 4 back, and gives it .1
  CHECK(head.chance("local") == Approx(5.0 / 6));
  CHECK(std::isnan(head.value("duplicate_token")));
  CHECK(std::isnan(head.value("prefix_matching")));
}

TEST_CASE("a map of both directions: distances have signs, and the next token has a metric of its own") {
  // Every query looks at the next token, the last one at itself; all keys are visible.
  const Head head = head_of(rows_of({{0, 1}, {0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1}}), {1, 2, 3, 4}, full_rule());
  CHECK(head.value("next_token") == Approx(1));
  CHECK(head.chance("next_token") == Approx(0.25));
  CHECK(head.value("fixed_offset") == 0);  // two ahead or back: nothing
  const Head two_on = head_of(rows_of({{0, 0, 1}, {0, 0, 0, 1}, {1}, {0, 1}}), {1, 2, 3, 4}, full_rule());
  CHECK(two_on.value("fixed_offset") == Approx(1));
  CHECK(two_on.value("fixed_offset_at") == 2);  // of equals back before ahead
  CHECK(two_on.value("next_token") == 0);
  const Head ahead = head_of(rows_of({{0, 0, 1}, {0, 0, 0, 1}, {0.25f, 0.75f}, {0, 1}}), {1, 2, 3, 4}, full_rule());
  CHECK(ahead.value("fixed_offset_at") == -2);
  CHECK(head.value("mean_distance") == Approx(3.0 / 4));
  CHECK(head.chance("entropy") == Approx(std::log(4.0)));
  CHECK(head.chance("sink") == Approx(0.25));
  CHECK(head.value("self_attention") == Approx(0.25));
}

TEST_CASE("one token: no metric makes up a number") {
  const Head head = head_of(rows_of({{1}}), {5}, causal_rule());
  CHECK(head.value("entropy") == 0);
  CHECK(head.value("effective_tokens") == 1);
  CHECK(head.value("self_attention") == 1);
  for (const char* id : {"entropy_normalized", "entropy_without_sink", "sink", "sink_first_k", "previous_token",
                         "fixed_offset", "local", "duplicate_token", "prefix_matching"}) {
    CHECK_MESSAGE(std::isnan(head.value(id)), id);
    CHECK_MESSAGE(std::isnan(head.chance(id)), id);
  }
}

TEST_CASE("rows after cached tokens are read by their absolute positions") {
  // The last two rows of a five-token map, as a run that continues three cached tokens sees them.
  const Head whole = head_of(
      rows_of({{1}, {0.5f, 0.5f}, {0.2f, 0.2f, 0.6f}, {0.1f, 0.2f, 0.4f, 0.3f}, {0.3f, 0.1f, 0.1f, 0.1f, 0.4f}}),
      {4, 9, 4, 9, 4}, causal_rule());
  const Tensor bottom = whole.map.tile({3, 5}, {0, 5});
  const Head part = head_of(bottom, {4, 9, 4, 9, 4}, causal_rule(), 3);
  CHECK(part.value("sink") == Approx((0.1 + 0.3) / 2));
  CHECK(part.value("previous_token") == Approx((0.4 + 0.1) / 2));
  CHECK(part.value("self_attention") == Approx((0.3 + 0.4) / 2));
  CHECK(part.value("duplicate_token") == Approx((0.2 + (0.3 + 0.1)) / 2));
  CHECK(part.value("prefix_matching") == Approx((0.4 + (0.1 + 0.1)) / 2));
  CHECK(part.value("mean_distance") == Approx((0.1 * 3 + 0.2 * 2 + 0.4 + 0.3 * 4 + 0.1 * (3 + 2 + 1)) / 2));
  CHECK(part.chance("entropy") == Approx((std::log(4.0) + std::log(5.0)) / 2));
  CHECK(part.value("sink_first_k") == Approx(0.6));  // query 3 is one of the first four itself
}

TEST_CASE("links are read from the map when its statistics were taken without them") {
  const Tensor weights = three().map.to_dense();
  const Head head{TextMarks::of(std::vector<std::int32_t>{7, 8, 7}),
                  AttentionMap::dense({}, weights, causal_rule(), stats_of_weights(weights, nullptr))};
  REQUIRE(head.map.stats().duplicate.empty());
  CHECK(head.value("duplicate_token") == Approx(0.5));
  CHECK(head.value("prefix_matching") == Approx(0.25));
}

TEST_CASE("the even head's statistics are those of its weights, for masks with windows and holes too") {
  Random random(21);
  const std::shared_ptr<const AttentionRule> rules[] = {causal_rule(), full_rule(), std::make_shared<Holes>()};
  for (const auto& rule : rules)
    for (const Index n : {1, 2, 5, 12, 40})
      for (const Index offset : {Index{0}, Index{4}}) {
        std::vector<std::int32_t> tokens;
        for (Index i = 0; i < n + offset; ++i) tokens.push_back(static_cast<std::int32_t>(random.below(6)));
        const Head like = head_of(Tensor::zeros({n, n + offset}), tokens, rule, offset);
        const AttentionMap even = even_head(like.map, like.text.links);
        const auto expected = stats_of_weights(even.to_dense(), &like.text.links, offset);
        const HeadStats& stats = even.stats();
        const auto same = [&](const auto& a, const auto& b) {
          REQUIRE(a.size() == b.size());
          for (std::size_t i = 0; i < a.size(); ++i)
            REQUIRE((std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) < 1e-5 ||
                     (std::isnan(a[i]) && std::isnan(b[i]))));
        };
        same(stats.entropy, expected->entropy);
        same(stats.entropy_without_first, expected->entropy_without_first);
        same(stats.max_weight, expected->max_weight);
        same(stats.max_key, expected->max_key);
        same(stats.first, expected->first);
        same(stats.duplicate, expected->duplicate);
        same(stats.induction, expected->induction);
        same(stats.column_mass, expected->column_mass);
        same(stats.distance_mass, expected->distance_mass);
        for (Index i = 0; i < n; ++i)
          for (Index j = 0; j < n + offset; ++j)
            REQUIRE(even.weight(i, j) == Approx(masked(*rule, offset + i, j, n + offset)
                                                    ? 0.0
                                                    : 1 / static_cast<double>(visible_count(like.map, i))));
      }
}

TEST_CASE("a value at its own chance level: the even head scores exactly what chance promises") {
  Random random(4);
  constexpr Index n = 70;
  const std::vector<Token> tokens = english(n, random);
  for (const bool causal : {true, false}) {
    Tensor weights = Tensor::zeros({n, n});
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < (causal ? i + 1 : n); ++j) weights.ref(i, j) = 1 / static_cast<float>(causal ? i + 1 : n);
    const Head head = head_of_text(weights, tokens, causal ? causal_rule() : full_rule());
    for (const Metric& entry : metrics()) {
      if (entry.id == "fixed_offset_at") continue;
      const double value = entry.value(head.input());
      if (causal && (entry.id == "next_token" || entry.id == "adjective_to_noun" ||
                     entry.id == "preposition_to_noun"))  // none is seen
        CHECK(std::isnan(value));
      else
        CHECK_MESSAGE(value == Approx(entry.chance(head.input())).epsilon(1e-5), entry.id);
    }
  }
}

TEST_CASE("values stay in the range that the table states, on random heads") {
  Random random(22);
  std::map<std::string_view, int> told;
  for (int sample = 0; sample < 60; ++sample) {
    const bool causal = sample % 2 == 0;
    const auto n = static_cast<Index>(1 + random.below(60));
    Tensor weights = Tensor::zeros({n, n});
    const std::vector<Token> tokens = english(n, random);
    for (Index i = 0; i < n; ++i) {
      double sum = 0;
      std::vector<double> raw;
      const Index seen = causal ? i + 1 : n;
      for (Index j = 0; j < seen; ++j) sum += raw.emplace_back(std::exp(4 * static_cast<double>(random.normal())));
      for (Index j = 0; j < seen; ++j) weights.ref(i, j) = static_cast<float>(raw[static_cast<std::size_t>(j)] / sum);
    }
    const Head head = head_of_text(weights, tokens, causal ? causal_rule() : full_rule());
    for (const Metric& entry : metrics()) {
      const double value = entry.value(head.input());
      if (std::isnan(value)) continue;
      ++told[entry.id];
      CHECK_MESSAGE(value >= entry.low - 1e-6, entry.id);
      CHECK_MESSAGE(value <= entry.high + 1e-6, entry.id);
    }
  }
  for (const Metric& entry : metrics()) CHECK_MESSAGE(told[entry.id] > 20, entry.id);
}

TEST_CASE("row and column masses, by hand") {
  const Head head = head_of(rows_of({{1, 0.5f}, {-0.25f, 2}}), {1, 2}, nullptr);
  CHECK(row_mass(head.map)[0] == Approx(1.5));
  CHECK(row_mass(head.map)[1] == Approx(1.75));
  CHECK(column_mass(head.map)[0] == Approx(0.75));
  CHECK(column_mass(head.map)[1] == Approx(2.5));
  CHECK(rows_at_distance(head.map, 1) == 1);
  CHECK(rows_at_distance(head.map, -1) == 1);
  CHECK(rows_at_distance(head.map, 2) == 0);
  CHECK(weight_at_distance(head.map, -1) == Approx(0.5));
  CHECK(std::isnan(weight_at_distance(head.map, 5)));
}

TEST_CASE("the table: ids are unique and found, and an unknown one is answered with the list") {
  std::set<std::string_view> ids;
  for (const Metric& entry : metrics()) {
    ids.insert(entry.id);
    CHECK(&metric(entry.id) == &entry);
    CHECK(!entry.formula.empty());
    CHECK(entry.low < entry.high);
  }
  CHECK(ids.size() == metrics().size());
  try {
    metric("entropie");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("prefix_matching") != std::string::npos);
    CHECK(error.found == "\"entropie\"");
  }
}

TEST_CASE("the head table holds every metric of every head, and NaN where no map was recorded") {
  Trace trace;
  trace.model.dims.heads = 2;
  for (const std::int32_t id : {7, 8, 7}) trace.tokens.emplace_back().id = id;
  trace.maps.push_back(three().map);
  trace.maps.emplace_back();
  const HeadTable table = head_table(trace);
  REQUIRE(table.value.size() == 2);
  REQUIRE(table.value[0].size() == metrics().size());
  const Head head = three();
  for (std::size_t m = 0; m < metrics().size(); ++m) {
    const double value = metrics()[m].value(head.input()), chance = metrics()[m].chance(head.input());
    CHECK((std::isnan(value) ? std::isnan(table.value[0][m]) : table.value[0][m] == value));
    CHECK((std::isnan(chance) ? std::isnan(table.chance[0][m]) : table.chance[0][m] == chance));
    CHECK(std::isnan(table.value[1][m]));
  }
  const std::vector<double> sinks = evaluate(metric("sink"), trace);
  CHECK(sinks[0] == Approx(0.375));
  CHECK(std::isnan(sinks[1]));
}

TEST_CASE("weights that are no probabilities have the metrics of any weights alone, and no class") {
  const Tensor signed_weights = rows_of({{1}, {-0.25f, 0.75f}, {-0.5f, 0.25f, 0.9f}}),
               unnormalised = rows_of({{2}, {0.5f, 1.5f}, {1, 0.5f, 0.5f}});
  for (const Tensor& weights : {signed_weights, unnormalised}) {
    const std::vector<std::int32_t> tokens{7, 8, 7};
    const TextMarks text = TextMarks::of(tokens);
    const AttentionMap map = AttentionMap::dense({.kind = MapKind::effective}, weights, causal_rule(),
                                                 stats_of_weights(weights, &text.links));
    for (const Metric& each : metrics()) {
      CAPTURE(each.id);
      CHECK(each.any_weights == (each.id == "row_mass" || each.id == "fixed_offset_at"));
      if (!each.any_weights) CHECK(std::isnan(each.value({map, text})));
      // What an even head would give does not hang on them.
      const double chance = each.chance({map, text}), usual = three().chance(each.id);
      CHECK((chance == usual || (std::isnan(chance) && std::isnan(usual))));
    }
    CHECK(classes_of({map, text}, default_class_rules()).met.empty());
    CHECK(std::isnan(induction_diagonal(map, 2)));
  }
  const std::vector<std::int32_t> tokens{7, 8, 7};
  const TextMarks text = TextMarks::of(tokens);
  const auto of = [&](const Tensor& weights, MapKind kind, std::string_view id) {
    const AttentionMap map =
        AttentionMap::dense({.kind = kind}, weights, causal_rule(), stats_of_weights(weights, &text.links));
    return metric(id).value({map, text});
  };
  CHECK(of(signed_weights, MapKind::effective, "row_mass") == Approx((1 + 0.5 + 0.65) / 3));
  CHECK(of(unnormalised, MapKind::effective, "row_mass") == Approx(2));
  // Exact zeros are probabilities.
  CHECK(of(rows_of({{1}, {0, 1}, {0, 0.5f, 0.5f}}), MapKind::sparse, "sink") == Approx(0));
}

namespace {
/// Every query sees every key but the first, which sees nothing: its range ends before it begins.
class AllButFirst final : public AttentionRule {
 public:
  KeyRange keys(Index query, Index n_key) const override {
    return query == 0 ? KeyRange{n_key, 0} : KeyRange{0, n_key};
  }
  std::string describe() const override { return "all but the first"; }
};
}  // namespace

TEST_CASE("a row that sees nothing is no row of any distance, and takes none of another's") {
  // Six tokens, each looking two ahead; keys two ahead are seen by rows 1 to 3, three of six, which is half.
  Tensor weights = Tensor::zeros({6, 6});
  for (Index i = 1; i < 4; ++i) weights.ref(i, i + 2) = 1;
  weights.ref(4, 4) = weights.ref(5, 5) = 1;
  const Head head = head_of(weights, {1, 2, 3, 4, 5, 6}, std::make_shared<AllButFirst>());
  const BestOffset best = best_offset(head.map);
  CHECK(best.distance == -2);
  CHECK(best.weight == Approx(3.0 / 4));  // of the four rows that the text has it for
  CHECK(best.tried == 3);                 // 2 and 3 back, 2 ahead
}

TEST_CASE("the cells of a distance lie within the text: of the last token none is next, of the first none before") {
  const Head head = three();
  const auto of = [&](const char* id, Index query) {
    std::vector<Index> keys;
    metric(id).cells(head.input())(query, keys);
    return keys;
  };
  using Keys = std::vector<Index>;
  CHECK(of("next_token", 0) == Keys{1});
  CHECK(of("next_token", 1) == Keys{2});
  CHECK(of("next_token", 2) == Keys{});
  CHECK(of("previous_token", 0) == Keys{});
  CHECK(of("previous_token", 1) == Keys{0});
  CHECK(of("previous_token", 2) == Keys{1});
}

}  // namespace headscope::metrics_test
