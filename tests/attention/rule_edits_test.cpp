// Rules made of other rules, row by row, and what a model itself does to its scores.

#include "core/attention/rule_edits.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/attention/masks.h"
#include "core/attention/own_scores.h"
#include "core/attention/positions/alibi.h"

namespace headscope::rule_edits_test {

namespace {
constexpr float nothing = -std::numeric_limits<float>::infinity();

std::vector<float> row_of(const AttentionRule& rule, Index query, Index n_key, float each = 0) {
  const KeyRange keys = rule.keys(query, n_key);
  std::vector<float> scores(static_cast<std::size_t>(std::max<Index>(keys.size(), 0)), each);
  if (!rule.plain()) rule.apply(query, keys.begin, scores);
  return scores;
}

/// Keys of [2, 5) but 3; of query 0 a range that ends before it begins, as of one that sees nothing.
class Odd final : public AttentionRule {
 public:
  KeyRange keys(Index query, Index) const override { return query == 0 ? KeyRange{3, 1} : KeyRange{2, 5}; }
  bool plain() const override { return false; }
  void apply(Index, Index first_key, std::span<float> scores) const override {
    for (std::size_t c = 0; c < scores.size(); ++c)
      if (first_key + static_cast<Index>(c) == 3) scores[c] = nothing;
  }
  std::string describe() const override { return "odd"; }
};
}  // namespace

TEST_CASE("keys that a query sees are counted: all of a plain rule's, without those that it hides, none of no range") {
  CHECK(seen_keys(*causal_rule(), 4, 3) == std::vector<Index>{1, 2, 3, 3});
  CHECK(seen_keys(*full_rule(), 2, 5) == std::vector<Index>{5, 5});
  CHECK(seen_keys(Odd(), 3, 6) == std::vector<Index>{0, 2, 2});
  CHECK(length_factor(0, 4) == 0);
  CHECK(length_factor(1, 4) == 0);
  CHECK(length_factor(2, 4) == doctest::Approx(0.5));
  CHECK(length_factor(16, 4) == doctest::Approx(2));
  const RulePtr scaled = length_scaled_rule(causal_rule(), {1, 2, 16}, 4);
  CHECK(row_of(*scaled, 2, 3, 3) == std::vector<float>{6, 6, 6});
  CHECK(scaled->factor(1) == doctest::Approx(0.5));
  CHECK(scaled->describe() == causal_rule()->describe() + ", times ln n / ln 4");
}

TEST_CASE("a factor scales what stands there, the sink too, and opens nothing") {
  const auto by_row = [](Index query) { return query == 0 ? 0.0f : 3.0f; };
  const RulePtr rule = scaled_rule(
      sink_rule(biased_rule(
                    std::make_shared<Odd>(), [](Index, Index key) { return static_cast<float>(key); }, "key"),
                0.5f),
      by_row, "thrice");
  CHECK(row_of(*rule, 1, 6, 1) == std::vector<float>{9, nothing, 15});
  CHECK(rule->factor(1) == 3);
  CHECK(rule->sink(1) == 1.5f);
  CHECK(rule->sink(0) == 0);
  CHECK(scaled_rule(causal_rule(), by_row, "thrice")->sink(0) == nothing);
  CHECK(rule->describe() == "odd, key, learned sink 0.5, thrice");
  CHECK(row_of(*scaled_rule(
                   std::make_shared<Odd>(), [](Index) { return 0.0f; }, "none"),
               1, 6, 1) == std::vector<float>{0, nothing, 0});
}

TEST_CASE("a bias is by query and key, wherever the part of the row begins") {
  const RulePtr rule = biased_rule(
      causal_rule(), [](Index query, Index key) { return static_cast<float>(10 * query + key); }, "places");
  std::vector<float> part(2, 0.5f);
  rule->apply(4, 2, part);
  CHECK(part == std::vector<float>{42.5f, 43.5f});
  CHECK(row_of(*rule, 2, 9) == std::vector<float>{20, 21, 22});
  CHECK(rule->keys(4, 9).end == 5);
  CHECK(rule->cap(0) == 0);
  CHECK(rule->factor(0) == 1);
}

TEST_CASE("a soft cap bends before anything else is done") {
  const RulePtr rule = capped_rule(alibi_rule(causal_rule(), 0.25), 2);
  const std::vector<float> row = row_of(*rule, 2, 9, 3);
  const double bent = 2 * std::tanh(1.5);
  for (std::size_t j = 0; j < 3; ++j)
    CHECK(static_cast<double>(row[j]) == doctest::Approx(bent - 0.25 * static_cast<double>(2 - j)));
  CHECK(rule->cap(7) == 2);
  CHECK(rule->describe() == causal_rule()->describe() + ", ALiBi slope 0.25, soft cap 2");
}

TEST_CASE("without the first keys: what is left begins behind them, and is nothing where there was no more") {
  const RulePtr rule = without_first(causal_rule(), 2);
  CHECK(rule->keys(5, 9).begin == 2);
  CHECK(rule->keys(5, 9).end == 6);
  CHECK(rule->keys(1, 9).size() == 0);
  CHECK(rule->keys(0, 9).size() == 0);
  CHECK(rule->keys(2, 9).size() == 1);
  CHECK(without_first(window_rule(2), 1)->keys(5, 9).begin == 4);
  CHECK(without_first(std::make_shared<Odd>(), 1)->keys(0, 6).size() == 0);
  CHECK(rule->describe() == causal_rule()->describe() + ", without the first 2");
}

TEST_CASE("one key: the one that is asked for, where the base shows it") {
  const auto at = [](RulePtr base, Index ahead, Index query, Index n_key) {
    const KeyRange keys = one_key_rule(
                              std::move(base), [ahead](Index q) { return q + ahead; }, "one")
                              ->keys(query, n_key);
    return keys.size() <= 0 ? -1 : keys.size() == 1 ? keys.begin : 99;
  };
  CHECK(at(causal_rule(), -1, 3, 9) == 2);
  CHECK(at(causal_rule(), -1, 1, 9) == 0);
  CHECK(at(causal_rule(), -1, 0, 9) == -1);  // before the text
  CHECK(at(causal_rule(), 1, 3, 9) == -1);   // hidden
  CHECK(at(full_rule(), 1, 3, 9) == 4);
  CHECK(at(full_rule(), 1, 8, 9) == -1);  // behind the text
  CHECK(at(full_rule(), 1, 7, 9) == 8);
  CHECK(at(full_rule(), -3, 1, 9) == -1);
  CHECK(at(std::make_shared<Odd>(), 2, 1, 9) == -1);  // key 3, which it hides inside its range
  CHECK(at(std::make_shared<Odd>(), 3, 1, 9) == 4);
  CHECK(one_key_rule(
            causal_rule(), [](Index) { return Index{0}; }, "one")
            ->describe() == causal_rule()->describe() + ", one");
}

TEST_CASE("rules by rows: each part up to its end, the last for what lies behind it, neighbours of one rule joined") {
  const RulePtr causal = causal_rule(), capped = capped_rule(causal, 2), sunk = sink_rule(full_rule(), 0.5f);
  const RulePtr rule = rule_by_rows({{2, causal}, {4, capped}, {5, capped}, {7, sunk}});
  CHECK(rule->describe() ==
        causal->describe() + " at 0..1; " + capped->describe() + " at 2..4; " + sunk->describe() + " at 5..6");
  for (const Index query : {0, 1, 2, 3, 4, 5, 6, 7, 100}) {
    CAPTURE(query);
    CHECK(rule->cap(query) == (query >= 2 && query < 5 ? 2 : 0));
    CHECK(rule->sink(query) == (query >= 5 ? 0.5f : nothing));
    CHECK(rule->keys(query, 200).end == (query >= 5 ? 200 : query + 1));
    CHECK(rule->factor(query) == 1);
  }
  CHECK_FALSE(rule->plain());
  CHECK(row_of(*rule, 1, 9, 1) == std::vector<float>{1, 1});
  CHECK(static_cast<double>(row_of(*rule, 4, 9, 1)[0]) == doctest::Approx(2 * std::tanh(0.5)));
  CHECK(rule_by_rows({{2, causal}, {4, causal}}) == causal);
  CHECK(rule_by_rows({{2, causal}, {4, full_rule()}})->plain());
}

TEST_CASE("what a model does to its own scores: sink, cap, slope and buckets, the last two of positions alone") {
  const HeadRule plain{causal_rule()};
  CHECK(own_scores(plain.rule, plain) == plain.rule);
  HeadRule usual = plain;
  usual.cap = 0.5f;
  CHECK(own_scores(causal_rule(), usual)->cap(0) == 0.5f);
  CHECK(own_scores(causal_rule(), usual, false)->cap(0) == 0.5f);
  usual = plain;
  usual.sink = 0;
  CHECK(own_scores(causal_rule(), usual)->sink(3) == 0);
  for (const double slope : {0.25, 1.0, -0.5}) {
    usual = plain;
    usual.slope = slope;
    const auto s = static_cast<float>(slope);
    CHECK(row_of(*own_scores(causal_rule(), usual), 2, 9) == std::vector<float>{-2 * s, -s, 0});
    CHECK(own_scores(causal_rule(), usual, false)->plain());
  }
  // In bfloat16, of 8 bits: 0.3 ÷ 0.125 = 2.4 becomes 154 / 64 = 2.40625; its double and triple have no more bits.
  usual = plain;
  usual.slope = 0.3, usual.slope_unit = 0.125;
  const RulePtr rounded = own_scores(causal_rule(), usual);
  CHECK(rounded->describe() == causal_rule()->describe() + ", ALiBi slope 0.3, in bfloat16");
  const std::vector<float> row = row_of(*rounded, 3, 9);
  CHECK(row[3] == 0);
  CHECK(row[0] == -0.125f * 7.21875f);
  CHECK(row[1] == 0.125f * (2.40625f - 7.21875f));
  CHECK(row[2] == 0.125f * (4.8125f - 7.21875f));
  CHECK(own_scores(causal_rule(), usual, false)->plain());
  BucketBias buckets;
  buckets.bias = {4, 3, 2, 1}, buckets.max_distance = 16;
  usual = plain;
  usual.buckets = std::make_shared<BucketBias>(buckets);
  CHECK(row_of(*own_scores(causal_rule(), usual), 2, 9)[2] == 4);
  CHECK(row_of(*own_scores(causal_rule(), usual), 2, 9)[1] == 3);
  CHECK(own_scores(causal_rule(), usual, false)->plain());
}

}  // namespace headscope::rule_edits_test
