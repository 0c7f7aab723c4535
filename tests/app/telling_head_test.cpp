#include "app/state/telling_head.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/metrics/head_class.h"
#include "core/metrics/metric.h"

namespace headscope::telling_head_test {

namespace {
const ClassRule& rule(std::string_view id) {
  for (const ClassRule& rule : default_class_rules())
    if (rule.id == id) return rule;
  FAIL("no such class");
  return default_class_rules().front();
}

struct Verdict {
  const char* id;
  double score, chance;
};

/// Facts of one layer whose head i has the verdicts of row i.
std::optional<HeadId> chosen(const std::vector<std::vector<Verdict>>& heads) {
  auto trace = std::make_shared<Trace>();
  HeadFacts facts;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const Tensor weights = Tensor::full({1, 1}, 1.0f);
    trace->maps.push_back(
        AttentionMap::dense({3, static_cast<int>(i)}, weights, nullptr, stats_of_weights(weights, nullptr)));
    std::vector<HeadVerdict>& row = facts.verdicts.emplace_back();
    for (const Verdict& v : heads[i]) row.push_back({&rule(v.id), v.score, v.chance, {}, 20, 1e-9});
  }
  facts.trace = trace;
  return telling_head(facts);
}
}  // namespace

TEST_CASE("the first head to show is the clearest of the most interesting class") {
  CHECK_FALSE(chosen({{}, {}}));
  // As on the bundled example: the duplicate-token head beats its threshold by more, the induction head tells more.
  CHECK(chosen({{{"previous_token", 1, 0.06}},
                {{"duplicate_token", 0.94, 0.1}},
                {{"induction", 0.9, 0.1}},
                {{"sink", 1, 0.06}}}) == HeadId{3, 2});
  CHECK(chosen({{{"induction", 0.7, 0.1}}, {{"induction", 0.9, 0.1}}}) == HeadId{3, 1});
  // (0.5 − 0.1) / 0.9 is less than half of what is possible: a clear previous-token head goes first.
  CHECK(chosen({{{"induction", 0.5, 0.1}}, {{"previous_token", 0.9, 0.1}}}) == HeadId{3, 1});
  CHECK(chosen({{{"uniform", 1, 1}}, {{"induction", 0.5, 0.1}}}) == HeadId{3, 1});
  CHECK(chosen({{{"self", 0.9, 0.1}, {"local", 1, 0.2}}, {{"sink", 1, 0.06}}}) == HeadId{3, 0});
}

TEST_CASE("a softer head is the one whose entropy is nearest to half of an even head's") {
  auto trace = std::make_shared<Trace>();
  const auto column = static_cast<std::size_t>(&metric("entropy") - metrics().data());
  const auto head = [&](std::vector<std::pair<double, double>> entropies) {
    HeadFacts facts;
    for (std::size_t i = 0; i < entropies.size(); ++i) {
      if (trace->maps.size() <= i) {
        const Tensor weights = Tensor::full({1, 1}, 1.0f);
        trace->maps.push_back(
            AttentionMap::dense({1, static_cast<int>(i)}, weights, nullptr, stats_of_weights(weights, nullptr)));
      }
      facts.table.value.emplace_back(metrics().size(), 0.0)[column] = entropies[i].first;
      facts.table.chance.emplace_back(metrics().size(), 1.0)[column] = entropies[i].second;
    }
    facts.trace = trace;
    return softer_head(facts);
  };
  const double none = std::nan("");
  CHECK(head({{0.1, 3}, {1.4, 3}, {2.9, 3}}) == HeadId{1, 1});
  CHECK(head({{1.4, 3}, {1.0, 2}, {2.9, 3}}) == HeadId{1, 1});  // exactly half of its own
  CHECK(head({{none, none}, {2.9, 3}}) == HeadId{1, 1});        // signed weights have no entropy
  CHECK_FALSE(head({{none, none}}));
}

}  // namespace headscope::telling_head_test
