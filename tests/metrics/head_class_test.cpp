#include "core/metrics/head_class.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/metrics/chance_bound.h"
#include "tests/metrics/classes.h"
#include "tests/metrics/maps.h"

namespace headscope::head_class_test {

using namespace testing;
using doctest::Approx;

namespace {

// Forty tokens, twenty said twice, and a head that gives `share` of every row to one key and spreads the rest evenly.
template <class KeyOf>
Head planted(float share, KeyOf&& key_of) {
  constexpr Index n = 40;
  Tensor weights = Tensor::zeros({n, n});
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < n; ++i) {
    tokens.push_back(static_cast<std::int32_t>(i % 20));
    const Index key = key_of(i);
    const bool has = key >= 0 && key <= i;
    for (Index j = 0; j <= i; ++j) weights.ref(i, j) = (has ? 1 - share : 1) / static_cast<float>(i + 1);
    if (has) weights.ref(i, key) += share;
  }
  return head_of(weights, tokens, causal_rule());
}

std::string first_class(const Head& head) {
  const auto verdicts = classes_of(head.input(), default_class_rules()).met;
  return verdicts.empty() ? "" : verdicts.front().rule->id;
}

std::string complaint(const std::string& json) {
  try {
    parse_class_rules(json, "rules.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string rule(const std::string& changed) {
  std::string keys;
  for (const auto& [key, value] : {std::pair{"id", "\"a\""},
                                   {"title", "\"A\""},
                                   {"metric", "\"sink\""},
                                   {"at_least", "0.5"},
                                   {"color", "\"#000000\""}})
    if (const std::string name = "\"" + std::string(key) + "\": "; changed.find(name) == std::string::npos)
      keys += (keys.empty() ? "" : ", ") + name + value;
  return R"({"classes": [{)" + keys + changed + "}]}";
}

}  // namespace

TEST_CASE("planted heads get their class first") {
  CHECK(first_class(planted(0.9f, [](Index i) { return i - 1; })) == "previous_token");
  CHECK(first_class(planted(0.9f, [](Index i) { return i; })) == "self");
  CHECK(first_class(planted(0.9f, [](Index i) { return i - 5; })) == "fixed_offset");
  CHECK(first_class(planted(0.9f, [](Index i) { return i - 20; })) == "duplicate_token");
  CHECK(first_class(planted(0.9f, [](Index i) { return i < 20 ? 0 : i - 19; })) == "induction");
  CHECK(first_class(planted(0.9f, [](Index) { return 0; })) == "sink");
  CHECK(first_class(planted(0.9f, [](Index i) { return i - 1 - i % 3; })) == "local");
  CHECK(first_class(planted(0.0f, [](Index) { return 0; })) == "uniform");
  CHECK(first_class(planted(0.3f, [](Index i) { return i / 2; })).empty());
}

TEST_CASE("a verdict brings its score, what chance would score, and the strongest cells of the class") {
  const Head head = planted(0.8f, [](Index i) { return i - 1; });
  const auto verdicts = classes_of(head.input(), default_class_rules()).met;
  REQUIRE(!verdicts.empty());
  const HeadVerdict& verdict = verdicts.front();
  CHECK(verdict.rule->id == "previous_token");
  CHECK(verdict.score == Approx(head.value("previous_token")));
  CHECK(verdict.chance == Approx(head.chance("previous_token")));
  REQUIRE(verdict.evidence.size() == 5);
  // Each row's cell holds .8 + .2 / (i + 1), the more the earlier: query 1 first.
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(verdict.evidence[i].query == static_cast<Index>(i) + 1);
    CHECK(verdict.evidence[i].key == static_cast<Index>(i));
    CHECK(verdict.evidence[i].weight == Approx(0.8 + 0.2 / static_cast<double>(i + 2)));
  }
}

TEST_CASE("evidence of induction lies on the tokens after earlier equal ones, of a sink on the first token") {
  const Head induction = planted(0.7f, [](Index i) { return i < 20 ? 0 : i - 19; });
  bool found = false;
  for (const HeadVerdict& verdict : classes_of(induction.input(), default_class_rules()).met) {
    if (verdict.rule->id != "induction") continue;
    found = true;
    REQUIRE(verdict.evidence.size() == 5);
    for (const Evidence& cell : verdict.evidence) {
      CHECK(cell.query >= 20);
      CHECK(cell.key == cell.query - 19);
      CHECK(cell.weight == induction.map.weight(cell.query, cell.key));
    }
  }
  CHECK(found);
  found = false;
  const Head sink = planted(0.9f, [](Index) { return 0; });
  for (const HeadVerdict& verdict : classes_of(sink.input(), default_class_rules()).met) {
    if (verdict.rule->id != "sink") continue;
    found = true;
    REQUIRE(verdict.evidence.size() == 5);
    for (const Evidence& cell : verdict.evidence) {
      CHECK(cell.key == 0);
      CHECK(cell.query > 0);
    }
  }
  CHECK(found);
}

TEST_CASE("a query that sees a single key is no evidence: it has no choice") {
  const Head head = planted(0.8f, [](Index i) { return i; });
  const auto verdicts = classes_of(head.input(), default_class_rules()).met;
  REQUIRE(!verdicts.empty());
  CHECK(verdicts.front().rule->id == "self");
  CHECK(verdicts.front().evidence.front().query == 1);  // not query 0, whose weight on itself is 1
}

TEST_CASE("a uniform head's evidence is how little its largest cells stand out") {
  const auto verdicts = classes_of(planted(0.1f, [](Index i) { return i / 2; }).input(), default_class_rules()).met;
  REQUIRE(!verdicts.empty());
  REQUIRE(verdicts.front().rule->id == "uniform");
  // The largest weight is .1 + .9 / (i + 1); times i + 1 that is 1 + .1 i, most in the last row.
  CHECK(verdicts.front().evidence.front().query == 39);
  CHECK(verdicts.front().evidence.front().weight == Approx(0.1 + 0.9 / 40));
}

TEST_CASE("a short text cannot make a class out of nothing: chance raises the bar") {
  // Two tokens: the even head gives the first one ½ of the only row that counts, so ½ is no sink and .9 is not twice
  // that.
  const Head head = head_of(rows_of({{1}, {0.9f, 0.1f}}), {1, 2}, causal_rule());
  CHECK(first_class(head).empty());
}

TEST_CASE("a class needs rows: one cell with all of its row is none, whatever chance would give") {
  // Thirteen tokens of which one comes twice: one row of evidence for induction, and the head puts all of it there.
  Tensor weights = Tensor::zeros({13, 13});
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < 13; ++i) {
    tokens.push_back(i == 12 ? 0 : static_cast<std::int32_t>(i));
    for (Index j = 0; j <= i; ++j) weights.ref(i, j) = 1 / static_cast<float>(i + 1);
  }
  for (Index j = 0; j < 13; ++j) weights.ref(12, j) = j == 1 ? 1.0f : 0.0f;
  const Head one = head_of(weights, tokens, causal_rule());
  REQUIRE(one.value("prefix_matching") == 1);
  for (const HeadVerdict& verdict : classes_of(one.input(), default_class_rules()).met)
    CHECK(verdict.rule->id != "induction");
  // The same head under a rule that asks for nothing is what it was called before.
  auto lax = parse_class_rules(
      R"({"classes": [{"id": "i", "title": "I", "metric": "prefix_matching", "at_least": 0.4, "times_chance": 6,
          "rows_at_least": 1, "p_at_most": 1, "color": "#000000"}]})",
      "lax");
  REQUIRE(classes_of(one.input(), lax).met.size() == 1);
  CHECK(classes_of(one.input(), lax).met[0].rows == 1);
  CHECK(classes_of(one.input(), lax).met[0].p == Approx(1 / 13.0));  // all of the row on one of its 13 keys
  lax[0].rows_at_least = 2;
  CHECK(classes_of(one.input(), lax).met.empty());
}

TEST_CASE("a verdict says how many rows speak for it, and bounds how often chance does as well") {
  const auto verdict_on = [](const Head& head, const std::string& id) {
    for (const HeadVerdict& verdict : classes_of(head.input(), default_class_rules()).met)
      if (verdict.rule->id == id) return verdict;
    FAIL("no class " << id);
    return HeadVerdict{};
  };
  const HeadVerdict induction = verdict_on(planted(0.9f, [](Index i) { return i < 20 ? 0 : i - 19; }), "induction");
  CHECK(induction.rows == 20);
  double score = 0, chance = 0;
  for (Index i = 20; i < 40; ++i) {
    const double even = 1 / static_cast<double>(i + 1);
    chance += even / 20, score += (0.9 + 0.1 * even) / 20;
  }
  const double bits = score * std::log(score / chance) + (1 - score) * std::log((1 - score) / (1 - chance));
  CHECK(std::log(induction.p) == Approx(-20 * bits).epsilon(1e-4));
  CHECK(sureness(induction) == "20 rows, p ≤ 1e-23");
  // Of the offsets that at least half of the rows can see, 2 … 20, the best was taken.
  const HeadVerdict offset = verdict_on(planted(0.9f, [](Index i) { return i - 5; }), "fixed_offset");
  CHECK(offset.rows == 35);
  double at_five = 0, even_five = 0;
  for (Index i = 5; i < 40; ++i) {
    const double even = 1 / static_cast<double>(i + 1);
    even_five += even / 35, at_five += (0.9 + 0.1 * even) / 35;
  }
  CHECK(offset.p / chance_bound(at_five, even_five, 35) == Approx(19).epsilon(1e-3));
  // A metric of whole rows has no such bound, only rows.
  const HeadVerdict uniform = verdict_on(planted(0.0f, [](Index) { return 0; }), "uniform");
  CHECK(uniform.rows == 39);
  CHECK(std::isnan(uniform.p));
  CHECK(sureness(uniform) == "39 rows");
}

TEST_CASE("the bound of Hoeffding 1963: by hand, and never below how often chance really does as well") {
  CHECK(chance_bound(0.5, 0.5, 100) == 1);
  CHECK(chance_bound(0.2, 0.5, 100) == 1);
  CHECK(chance_bound(1, 0.1, 1) == Approx(0.1));
  CHECK(chance_bound(1, 0.1, 3) == Approx(0.001));
  CHECK(chance_bound(0.75, 0.5, 4) == Approx(std::exp(-4 * (0.75 * std::log(1.5) + 0.25 * std::log(0.5)))));
  // Coins with chances 1/2 … 1/9, eight rows: the exact distribution of the number of hits.
  std::vector<double> hits{1};
  double chance = 0;
  for (int i = 2; i <= 9; ++i) {
    std::vector<double> next(hits.size() + 1, 0.0);
    for (std::size_t k = 0; k < hits.size(); ++k) next[k] += hits[k] * (1 - 1.0 / i), next[k + 1] += hits[k] / i;
    hits = next;
    chance += 1.0 / i / 8;
  }
  double tail = 0;
  for (std::size_t k = 8; k > 2; --k) {
    tail += hits[k];
    CAPTURE(k);
    CHECK(chance_bound(static_cast<double>(k) / 8, chance, 8) >= tail);
  }
}

TEST_CASE("heads with random weights on a short text get no class but by the rate that the bound allows") {
  // 13 tokens, four kinds of token, each row's weight on one key at random: the sharpest head that knows nothing.
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < 13; ++i) tokens.push_back(i % 4);
  int classed = 0, heads = 0;
  std::uint64_t state = 1;
  for (; heads < 2000; ++heads) {
    Tensor weights = Tensor::zeros({13, 13});
    for (Index i = 0; i < 13; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      weights.ref(i, static_cast<Index>((state >> 33) % static_cast<std::uint64_t>(i + 1))) = 1;
    }
    classed += !classes_of(head_of(weights, tokens, causal_rule()).input(), default_class_rules()).met.empty();
  }
  CHECK(classed <= 0.001 * 7 * heads);  // seven classes with a bound
}

TEST_CASE("a weight that is no number makes a sum that is none, not one without it") {
  // Eight keys that are commas; all rows look at key 2 · k with 0.1 · k, and at key 6 with a weight that is no number.
  std::vector<Token> tokens;
  for (int i = 0; i < 16; ++i) {
    Token& token = tokens.emplace_back();
    token.id = i % 2 == 0 ? 0 : i;
    token.bytes = token.label = i % 2 == 0 ? "," : std::string(1, static_cast<char>('a' + i));
  }
  const auto evidence_of = [&](float at_six) {
    Tensor weights = Tensor::zeros({16, 16});
    for (Index i = 0; i < 16; ++i)
      for (Index key = 2; key < 16; key += 2) weights.ref(i, key) = key == 6 ? at_six : 0.01f * static_cast<float>(key);
    const Head head = head_of_text(weights, tokens, full_rule());
    return row_evidence(head.input(), metric("punctuation"));
  };
  const double others = 0.01 * (2 + 4 + 8 + 10 + 12 + 14);
  CHECK(evidence_of(0.25f).score == Approx(16 * (others + 0.25)));
  const RowEvidence none = evidence_of(std::numeric_limits<float>::quiet_NaN());
  CHECK(none.rows == 16);
  CHECK(std::isnan(none.score));
  CHECK(none.p() == 1);
  CHECK_FALSE(none.enough_for(default_class_rules().front()));
}

TEST_CASE("the built-in rules name known metrics, and classes come strongest margin first") {
  CHECK(default_class_rules().size() == 21);
  for (const ClassRule& entry : default_class_rules()) CHECK_NOTHROW(metric(entry.metric));
  // .95 on the previous token is 1.9 times its bar of .5; everything near is 1.2 times its bar of .8.
  const auto verdicts = classes_of(planted(0.95f, [](Index i) { return i - 1; }).input(), default_class_rules()).met;
  REQUIRE(verdicts.size() == 2);
  CHECK(verdicts[0].rule->id == "previous_token");
  CHECK(verdicts[1].rule->id == "local");
}

TEST_CASE("broken rules are refused by name") {
  CHECK(complaint(rule("")).empty());
  CHECK(complaint(rule(R"(, "times_chance": 2)")).empty());
  CHECK(complaint("{").find("rules.json: expected valid JSON") == 0);
  CHECK(complaint("[]").find("rules.json: expected an object") != std::string::npos);
  CHECK(complaint(R"({"classes": [1]})").find("rules.json: classes[0]: expected a JSON object, found 1") == 0);
  CHECK(complaint(R"({"classes": [{"id": "a"}]})").find("classes[0]: expected the key 'title', found none") !=
        std::string::npos);
  CHECK(complaint(rule(R"(, "metrik": "sink")")).find("classes[0]: expected only the keys id, title") !=
        std::string::npos);
  CHECK(complaint(rule(R"(, "metric": "sinks")")).find("found \"sinks\"") != std::string::npos);
  CHECK(complaint(rule(R"(, "at_least": 1.5)")).find("the range of sink, found 1.5") != std::string::npos);
  CHECK(complaint(rule(R"(, "at_least": 0)")).find("classes[0].at_least") != std::string::npos);
  CHECK(complaint(rule(R"(, "at_least": "x")")).find("expected a number, found \"x\"") != std::string::npos);
  CHECK(complaint(rule(R"(, "at_least": 1e999)")).find("rules.json") != std::string::npos);
  CHECK(complaint(rule(R"(, "times_chance": -1)")).find("classes[0].times_chance") != std::string::npos);
  CHECK(complaint(rule(R"(, "rows_at_least": 3, "p_at_most": 0.5)")).empty());
  CHECK(complaint(rule(R"(, "rows_at_least": 0)")).find("classes[0].rows_at_least") != std::string::npos);
  CHECK(complaint(rule(R"(, "rows_at_least": 2.5)")).find("found 2.5") != std::string::npos);
  CHECK(complaint(rule(R"(, "p_at_most": 0)")).find("classes[0].p_at_most") != std::string::npos);
  CHECK(complaint(rule(R"(, "p_at_most": 2)")).find("found 2") != std::string::npos);
  CHECK(complaint(rule(R"(, "color": "red")")).find("found \"red\"") != std::string::npos);
  const std::string one = R"({"id": "a", "title": "A", "metric": "sink", "at_least": 0.5, "color": "#000000"})";
  CHECK(complaint("{\"classes\": [" + one + "," + one + "]}").find("classes[1].id") != std::string::npos);
}

namespace {

// What is left of a colour for people without one kind of cone: Viénot, Brettel & Mollon (1999) for the red and green
// ones in linear RGB, then CIE L*a*b*.
std::array<double, 3> lab_as_seen(const std::string& hex, int lacking) {
  std::array<double, 3> rgb{};
  for (std::size_t c = 0; c < 3; ++c) {
    const double v = std::stoi(hex.substr(1 + 2 * c, 2), nullptr, 16) / 255.0;
    rgb[c] = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  }
  if (lacking == 1)
    rgb = {0.11238 * rgb[0] + 0.88762 * rgb[1], 0.11238 * rgb[0] + 0.88762 * rgb[1],
           0.00401 * rgb[0] - 0.00401 * rgb[1] + rgb[2]};
  if (lacking == 2)
    rgb = {0.29275 * rgb[0] + 0.70725 * rgb[1], 0.29275 * rgb[0] + 0.70725 * rgb[1],
           -0.02234 * rgb[0] + 0.02234 * rgb[1] + rgb[2]};
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124 * rgb[0] + 0.3576 * rgb[1] + 0.1805 * rgb[2]) / 0.95047);
  const double y = f(0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]);
  const double z = f((0.0193 * rgb[0] + 0.1192 * rgb[1] + 0.9505 * rgb[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

}  // namespace

TEST_CASE("class colours stay apart for people without red or green cones") {
  const auto& rules = default_class_rules();
  for (const int lacking : {0, 1, 2})
    for (std::size_t a = 0; a < rules.size(); ++a)
      for (std::size_t b = a + 1; b < rules.size(); ++b) {
        const auto left = lab_as_seen(rules[a].color, lacking), right = lab_as_seen(rules[b].color, lacking);
        const double distance = std::hypot(left[0] - right[0], left[1] - right[1], left[2] - right[2]);
        CHECK_MESSAGE(distance > 20,
                      rules[a].id << " and " << rules[b].id << ", lacking " << lacking << ": " << distance);
      }
}

TEST_CASE("by distance: what other rows give to a key as far away, by hand") {
  // Tokens 7 8 7 8: rows 2 and 3 look at their own token two back with ½ and ¼, and each is what the other's distance
  // gives. Three back, where row 3 alone could look, nobody else does.
  const Head head = head_of(rows_of({{1}, {0.5f, 0.5f}, {0.5f, 0.25f, 0.25f}, {0.25f, 0.25f, 0.25f, 0.25f}}),
                            {7, 8, 7, 8}, causal_rule());
  const RowEvidence found = row_evidence(head.input(), metric("duplicate_token"), true);
  CHECK(found.score == Approx(0.75));
  CHECK(found.by_distance == Approx(0.25 + 0.5));
  CHECK(row_evidence(head.input(), metric("duplicate_token")).by_distance == 0);
  const Head once = head_of(rows_of({{1}, {0.5f, 0.5f}, {0.5f, 0.25f, 0.25f}}), {7, 8, 7}, causal_rule());
  CHECK(row_evidence(once.input(), metric("duplicate_token"), true).by_distance == 0);  // no other row is as far
}

}  // namespace headscope::head_class_test
