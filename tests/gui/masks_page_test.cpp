// The pages of masks and of shared keys, used as a person uses them.

#include <algorithm>

#include "core/attention/masks.h"
#include "core/edits/mask_edit.h"
#include "tests/gui/analyse_page.h"
#include "tests/gui/explore.h"

namespace headscope::masks_page_test {

using testing::Explore;

namespace {

struct Analysed : Explore {
  AnalyseWorkspace analyse;
  explicit Analysed(const char* page) : analyse(app.explorer().jobs, app.explorer().run) {
    app.add(analyse);
    app.settings().pages["Analyse"] = page;
    driver.frames(2);
    driver.click("Analyse");
    REQUIRE(still());
  }
  bool still() {
    int quiet = 0;
    return driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 12; }, 20'000);
  }
  /// The mask that is among the edits; "" = none.
  std::string kept() {
    for (const Intervention& each : state().document.edits)
      if (const auto* mask = each.action.as<SetMask>()) return mask->spec;
    return "";
  }
  /// The value of a fact, as it is painted.
  std::vector<Color> value(const Item& row) {
    const Image seen = app.window().capture();
    std::vector<Color> out;
    for (int y = static_cast<int>(row.min.y) + 1; y < static_cast<int>(row.max.y) - 1; ++y)
      for (int x = static_cast<int>(row.center().x); x < static_cast<int>(row.max.x); ++x) out.push_back(seen.at(x, y));
    return out;
  }
};

}  // namespace

TEST_CASE("a mask is taken, joined, painted, and kept among the edits") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analysed a("masks");
  a.driver.click("take mask window");
  REQUIRE(a.still());
  a.driver.click("or");
  a.driver.click("take mask sink");
  REQUIRE(a.still());
  a.driver.click("Keep among the edits");
  REQUIRE(a.still());
  CHECK(a.kept() == "window 4 | sink 1 window 4");

  // A cell of the future is opened by a click, the diagonal closed by another.
  const auto tokens = static_cast<Index>(std::min<std::size_t>(a.results().run->trace->tokens.size(), 128));
  const auto click_cell = [&](Index query, Index key) {
    const Item map = a.driver.item("mask picture/map");
    const float w = (map.max.x - map.min.x) / static_cast<float>(tokens),
                h = (map.max.y - map.min.y) / static_cast<float>(tokens);
    a.driver.click_at(
        {map.min.x + w * (static_cast<float>(key) + 0.5f), map.min.y + h * (static_cast<float>(query) + 0.5f)});
    REQUIRE(a.still());
  };
  click_cell(2, 9);
  click_cell(6, 6);
  a.driver.click("Keep among the edits");
  REQUIRE(a.still());
  const auto rule = parse_mask(a.kept());
  CHECK_FALSE(masked(*rule, 2, 9, tokens));
  CHECK(masked(*rule, 6, 6, tokens));
  CHECK_FALSE(masked(*rule, 7, 7, tokens));
  CHECK(masked(*rule, 2, 10, tokens));
  a.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  CHECK(a.kept() == "window 4 | sink 1 window 4");
}

TEST_CASE("what a mask costs is told of the text on screen, never of an earlier one") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analysed a("masks");
  const Item plain = a.driver.item("Loss as it is"), with = a.driver.item("… with this mask");
  const auto as_it_is = [&] { return a.value(plain); };
  const auto masked = [&] { return a.value(with); };
  // The first mask, causal, changes nothing: both lines show one number.
  REQUIRE(as_it_is() == masked());
  const auto before = masked();

  // While the new text's is under way, there is none.
  const std::string text = a.results().run->request.text;
  a.app.explorer().editor.set_text("the bees of Fox Hythe, the bees of");
  REQUIRE(a.driver.until([&] { return a.results().run->request.text != text; }));
  const auto none = masked();
  CHECK(none != before);
  REQUIRE(a.still());
  CHECK(masked() != none);
  CHECK(masked() == as_it_is());
}

TEST_CASE("a mask acts on a state as on attention: cells, and what it costs; it saves nothing and says so") {
  HEADSCOPE_NEEDS_DISPLAY();
  testing::AnalysePage page("tiny-mamba", 1280, 720);
  page.open("masks", "masks", "mask picture/map");
  CHECK_FALSE(page.driver.shown("Keys the cache must keep"));
  CHECK_FALSE(page.driver.shown("KV cache"));
  const auto was = page.results().run->next.front().probability;
  page.choose("take mask window");
  CHECK(page.driver.shown("Change of the answer (KL)"));
  page.choose("Keep among the edits");
  REQUIRE(page.state().document.edits.size() == 1);
  CHECK(describe(page.state().document.edits[0]) == "*: mask window 4");
  CHECK(page.results().run->next.front().probability != was);
}

TEST_CASE("a model that reads a text at once keeps no cache that a mask could save") {
  HEADSCOPE_NEEDS_DISPLAY();
  testing::AnalysePage page("tiny-bert", 1280, 720);
  page.open("masks", "masks", "mask picture/map");
  CHECK(page.driver.shown("Score and mixing work"));
  CHECK_FALSE(page.driver.shown("Keys the cache must keep"));
  CHECK_FALSE(page.driver.shown("KV cache"));
}

TEST_CASE("sharing keys is measured by itself, and a row of the table is tried out in Explore") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analysed a("sharing");
  REQUIRE(a.driver.until([&] { return a.driver.shown("MQA"); }, 20'000));
  REQUIRE(a.still());
  a.driver.click("MQA");
  REQUIRE(a.still());
  REQUIRE(a.state().document.edits.size() == 1);
  CHECK(describe(a.state().document.edits[0]) == "*: share keys 1");
  CHECK(a.app.requests().workspace == 0);
  CHECK(a.results().run->next.front().probability < 0.9);  // the head that looked back needs its own keys
}

}  // namespace headscope::masks_page_test
