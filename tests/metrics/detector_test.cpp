#include "core/metrics/detector.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/edits/mask_edit.h"
#include "core/metrics/metric.h"
#include "core/run/run_request.h"
#include "tests/metrics/maps.h"
#include "tests/support/paths.h"

namespace headscope::detector_test {

using namespace testing;
using doctest::Approx;

namespace {
std::vector<Token> tokens_of(const std::vector<std::int32_t>& ids) {
  std::vector<Token> tokens;
  for (const std::int32_t id : ids) tokens.push_back({id, "", std::to_string(id)});
  return tokens;
}
CellPattern chosen(Index size, const std::vector<std::pair<Index, Index>>& cells) {
  CellPattern pattern = no_cells(size);
  for (const auto& [query, key] : cells) pattern.set(query, key, true);
  return pattern;
}
}  // namespace

TEST_CASE("a detector's score and chance on three tokens, by hand") {
  const std::vector<std::int32_t> ids{7, 8, 7};
  const Head head = head_of(rows_of({{1}, {0.25f, 0.75f}, {0.5f, 0.25f, 0.25f}}), ids, causal_rule());
  // Row 0 has no key before it; rows 1 and 2 look at key 0 with .25 and .5; an even head with 1/2 and 1/3.
  Detection first = detect(head.map, cells_of(CellRule("k == 0 and q > 0"), tokens_of(ids)));
  CHECK(first.rows == 2);
  CHECK(first.score == Approx((0.25 + 0.5) / 2));
  CHECK(first.chance == Approx((1.0 / 2 + 1.0 / 3) / 2));
  // Keys that may not be seen count neither as cells nor make a row count.
  Detection ahead = detect(head.map, cells_of(CellRule("k > q"), tokens_of(ids)));
  CHECK(ahead.rows == 0);
  CHECK(std::isnan(ahead.score));
  CHECK(std::isnan(ahead.chance));
  // Two cells of one row add up.
  Detection painted = detect(head.map, chosen(3, {{2, 0}, {2, 1}, {0, 2}}));
  CHECK(painted.rows == 1);
  CHECK(painted.score == Approx(0.75));
  CHECK(painted.chance == Approx(2.0 / 3));
}

TEST_CASE("the rules of known classes equal their metrics, on every head of two models") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Backend backend{1};
    RunRequest request;
    request.model = reference(name);
    request.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2};
    for (const char* mask : {"", "window 5"}) {
      CAPTURE(mask);
      if (*mask) request.edits = {{{}, SetMask{mask}}};
      const auto trace = run(load_model(request.model, backend), request, Ctx{backend});
      const HeadTable table = head_table(*trace);
      int compared = 0;
      for (const DetectorPreset& preset : detector_presets()) {
        const auto known = std::ranges::find(metrics(), preset.id, &Metric::id);
        // Under a window, the metrics of distances and links count rows whose keys the mask hides; the detector does
        // not.
        if (known == metrics().end() || preset.id == "local" || (*mask && preset.id != "self_attention")) continue;
        const auto column = static_cast<std::size_t>(known - metrics().begin());
        const auto found = detect_all(*trace, cells_of(CellRule(preset.rule), trace->tokens));
        REQUIRE(found.size() == trace->maps.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CAPTURE(preset.id);
          CHECK(found[i].score == Approx(table.value[i][column]).epsilon(1e-5));
          CHECK(found[i].chance == Approx(table.chance[i][column]).epsilon(1e-5));
          ++compared;
        }
      }
      CHECK(compared >= static_cast<int>(trace->maps.size()) * (*mask ? 1 : 5));
    }
  }
}

TEST_CASE("every preset reads, and finds something in a text that repeats") {
  const auto tokens = tokens_of({1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4});
  for (const DetectorPreset& preset : detector_presets()) {
    CAPTURE(preset.id);
    CHECK(cells_of(CellRule(preset.rule), tokens).count() > 0);
  }
}

TEST_CASE("cells are switched on and off, each row in order") {
  CellPattern cells = chosen(6, {{3, 1}, {4, 1}, {4, 0}, {5, 0}, {5, 1}});
  CHECK(cells.count() == 5);
  CHECK(cells.has(3, 1));
  CHECK(cells.keys[4] == std::vector<Index>{0, 1});
  CHECK_FALSE(cells.has(3, 0));
  CHECK_FALSE(cells.has(7, 0));
  cells.set(3, 1, false);
  cells.set(3, 0, true);
  cells.set(3, 0, true);
  CHECK(cells.keys[3] == std::vector<Index>{0});
  Trace trace;
  trace.tokens.resize(5);
  CHECK_THROWS_AS(detect_all(trace, cells), Error);
}

}  // namespace headscope::detector_test
