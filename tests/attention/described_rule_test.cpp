#include "core/attention/described_rule.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/attention/masks.h"
#include "core/attention/positions/alibi.h"
#include "core/attention/positions/place_bias.h"
#include "core/attention/positions/t5_bias.h"
#include "core/base/error.h"

namespace headscope::described_rule_test {

namespace {
constexpr Index n = 9;

/// Cells of the first rows that a rule shows, as "x" and ".".
std::string shown(const AttentionRule& rule) {
  std::string cells;
  for (Index q = 0; q < n; ++q)
    for (Index k = 0; k < n; ++k) cells += masked(rule, q, k, n) ? '.' : 'x';
  return cells;
}
}  // namespace

TEST_CASE("what a rule says of itself is read back to the keys that it shows") {
  const RulePtr window = parse_mask("window 3"), full = full_rule(), causal = causal_rule();
  const auto half = [](Index) { return 0.5f; };
  const std::vector<RulePtr> rules{
      window,
      causal,
      full,
      parse_mask("documents 3,6 & not cells 5:3-4"),
      capped_rule(window, 30),
      sink_rule(window, 1.101f),
      scaled_rule(sink_rule(capped_rule(window, 2), 0.5f), half, "temperature 2"),
      alibi_rule(parse_mask("around 2"), 0.25),
      rounded_alibi_rule(window, 0.25, 1),
      t5_rule(full, {0, 1, 2, 3}, 9, true),
      place_rule(full, std::vector<float>(24, 1), 2, 4),
      length_scaled_rule(window, {1, 2, 3, 3, 3, 3, 3, 3, 3}, 8),
      scaled_rule(window, half, "uniform"),
      without_first(capped_rule(window, 4), 2),
      one_key_rule(
          window, [](Index query) { return std::max<Index>(query - 1, 0); }, "previous token"),
      one_key_rule(
          window, [](Index) { return Index{0}; }, "first token"),
      rule_by_rows({{4, window}, {7, scaled_rule(window, half, "temperature 2")}, {9, without_first(window, 1)}})};
  for (const RulePtr& rule : rules) {
    CAPTURE(rule->describe());
    CHECK(shown(*parse_described_rule(rule->describe())) == shown(*rule));
  }
}

TEST_CASE("a description that no rule gives is refused") {
  for (const char* text :
       {"", "window 3, a spell", "soft cap 3", "window 3 at 1..4", "window 3 at 0..4; causal at 6..7",
        "window 3 at 0..4; causal", "causal, without the first many", "causal at x..2"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_described_rule(text), Error);
  }
}

}  // namespace headscope::described_rule_test
