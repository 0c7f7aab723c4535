#include "core/attention/mask_facts.h"

#include <doctest/doctest.h>

#include "core/attention/masks.h"

namespace headscope::mask_facts_test {

TEST_CASE("cells, work and cache of masks, counted by hand") {
  const MaskFacts causal = mask_facts(*parse_mask("causal"), 4);
  CHECK(causal.cells == 10);
  CHECK(causal.causal_share() == 1);
  CHECK(causal.share() == doctest::Approx(10.0 / 16));
  CHECK(causal.kept_keys == 4);
  CHECK(causal.operations(8, 6) == 2 * 10 * 14);
  const MaskFacts window = mask_facts(*parse_mask("window 3"), 10);  // 1 + 2 + 8 · 3
  CHECK(window.cells == 27);
  CHECK(window.kept_keys == 2);  // token 10 sees 8 and 9, and nobody later sees more
  CHECK(mask_facts(*parse_mask("sink 1 window 3"), 10).kept_keys == 3);
  CHECK(mask_facts(*parse_mask("strided 4"), 16).kept_keys == 16);    // every column is somebody's
  CHECK(mask_facts(*parse_mask("dilated 2 15"), 10).kept_keys == 5);  // the next ten tokens see 0 … 4 at 15 back
  const MaskFacts full = mask_facts(*parse_mask("full"), 5);
  CHECK(full.cells == 25);
  CHECK(full.ahead == 10);
  const MaskFacts padded = mask_facts(*parse_mask("window 2 & padding 3"), 6);
  CHECK(padded.empty_rows == std::vector<Index>{4, 5});
  CHECK(hidden_cells(*parse_mask("causal"), 2) == std::vector<std::uint8_t>{0, 1, 0, 0});
}

}  // namespace headscope::mask_facts_test
