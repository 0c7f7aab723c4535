// The Analyse workspace, used as a person uses it: find an page, sweep, cancel, sweep again, select what was
// found.

#include <algorithm>

#include "app/state/controls_record.h"
#include "app/state/picture_recipe.h"
#include "core/base/file.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::analyse_test {

using testing::Explore;

namespace {
struct Analyse : Explore {
  AnalyseWorkspace analyse{app.explorer().jobs, app.explorer().run};
  Analyse() {
    app.add(analyse);
    driver.frames(2);
    driver.click("Analyse");
    driver.frames(2);
  }
  bool quiet() {
    int still = 0;
    return driver.until([&] { return (still = app.settled() ? still + 1 : 0) > 8; }, 20'000);
  }
};
}  // namespace

TEST_CASE("every head is taken out, a head of the atlas is selected, and opened in Explore") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  a.driver.click("Head ablation");
  REQUIRE(a.quiet());            // a small model is swept at once
  CHECK(a.driver.shown("1.0"));  // a row of the list
  a.driver.click("zero");
  REQUIRE(a.quiet());
  a.driver.click("Layer 1 Head 2");
  a.driver.frames(2);
  CHECK(a.state().document.selected == HeadId{1, 2});
  CHECK(a.app.requests().workspace == 1);
  a.driver.click("Open in Explore");
  a.driver.frames(2);
  CHECK(a.app.requests().workspace == 0);
}

TEST_CASE("what stands in for a head that is taken out may come from reference texts, and a session keeps them") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  a.driver.click("Head ablation");
  REQUIRE(a.quiet());
  const auto kept = [&] {
    ControlsRecord record;
    a.analyse.controls(record);
    return record.text();
  };
  const std::string field = "##reference texts of ablation kind";
  REQUIRE(a.driver.shown(field));  // the mean is what it opens on
  a.driver.click(field);
  a.driver.type("a b c a b");
  REQUIRE(a.quiet());
  CHECK(kept().find(R"("ablation_texts":"a b c a b")") != std::string::npos);
  // Another mean: the same head's effect is another.
  a.driver.hover("Layer 1 Head 2");
  a.driver.frames(3);
  CHECK(a.driver.told("ablate mean from \"a b c a b\""));
  a.driver.click("another's");
  REQUIRE(a.quiet());
  a.driver.hover("Layer 1 Head 2");
  a.driver.frames(3);
  CHECK(a.driver.told("ablate resample 1 from \"a b c a b\""));
  a.driver.click("zero");  // which is of no text
  REQUIRE(a.quiet());
  CHECK_FALSE(a.driver.shown(field));
}

TEST_CASE("a sweep is started, cancelled and started again") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  a.driver.click("Temperature sweep");
  REQUIRE(a.quiet());
  a.driver.click("33");  // some hundred passes
  REQUIRE(a.driver.until([&] { return a.driver.shown("Cancel"); }));
  a.driver.click("Cancel");
  a.driver.frames(2);
  REQUIRE(a.driver.shown("Start again"));
  REQUIRE(a.quiet());
  CHECK_FALSE(a.driver.shown("Cancel"));  // cancelled is cancelled
  a.driver.click("Start again");
  REQUIRE(a.driver.until([&] { return a.driver.shown("Cancel"); }));
  REQUIRE(a.quiet());
  CHECK(a.driver.shown("Start again"));
  a.driver.click("Layer 0 Head 3");
  a.driver.frames(2);
  CHECK(a.state().document.selected == HeadId{0, 3});
}

TEST_CASE("the catalogue: searched, walked with the keys, found by the palette, remembered") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  auto& pages = a.app.settings().pages;
  a.driver.click("Smallest circuit");
  CHECK(pages["Analyse"] == "circuit");
  a.driver.click("Head ablation");
  CHECK(pages["Analyse"] == "ablate");
  const HeadId before = a.state().document.selected;
  a.driver.key(ImGuiKey_DownArrow);
  a.driver.frames(2);
  CHECK(pages["Analyse"] != "ablate");           // the next; a slow machine repeats the key
  CHECK(a.state().document.selected == before);  // the key was the list's
  for (int i = 0; i < 5; ++i) a.driver.key(ImGuiKey_UpArrow);
  CHECK(pages["Analyse"] == "scan");  // the first of all
  a.driver.click("##search");
  a.driver.type("circ");
  a.driver.frames(2);
  CHECK(a.driver.shown("Smallest circuit"));
  CHECK_FALSE(a.driver.shown("Head ablation"));
  a.driver.key(ImGuiKey_Enter);
  a.driver.frames(2);
  CHECK(pages["Analyse"] == "circuit");

  a.driver.click("Explore");
  a.driver.frames(2);
  a.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  a.driver.frames(3);
  a.driver.type("activation patching");
  a.driver.frames(2);
  a.driver.key(ImGuiKey_Enter);
  a.driver.frames(3);
  CHECK(a.app.requests().workspace == 1);
  CHECK(pages["Analyse"] == "patch");
}

TEST_CASE("a detector: a rule ranks the heads, a wrong one says where, cells are painted") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  a.driver.click("Detector");
  REQUIRE(a.quiet());
  REQUIRE(a.driver.shown("match 0.0"));
  // The previous-token head leads; a click on it selects it.
  CHECK(a.driver.item("match 0.0").min.y < a.driver.item("match 1.0").min.y);
  a.driver.click("match 0.0");
  a.driver.frames(2);
  CHECK(a.state().document.selected == HeadId{0, 0});
  REQUIRE(a.quiet());
  a.driver.click("painted");
  a.driver.frames(2);
  a.driver.click("Clear");
  REQUIRE(a.quiet());
  CHECK_FALSE(a.driver.shown("match 0.0"));  // nothing is chosen, nobody leads
  const Item map = a.driver.item("detector map/map");
  a.driver.drag({map.min.x + 3, map.max.y - 12}, {map.min.x + (map.max.x - map.min.x) / 3, map.max.y - 12}, 8);
  REQUIRE(a.quiet());
  CHECK(a.driver.shown("match 1.3"));
}

TEST_CASE("the two answers are chosen once: in Explore by clicks, in an instrument by writing") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  a.driver.click("Explore");
  REQUIRE(a.settle());
  const std::int32_t third = a.results().run->next[2].id;
  a.driver.click(a.results().model.tokenizer->token(third).label, 1);  // the second of the two
  REQUIRE(a.state().view.contrast);
  CHECK(a.state().view.contrast->second == third);
  a.driver.click("Analyse");
  a.driver.click("Head ablation");
  REQUIRE(a.quiet());
  a.driver.click("##first answer");
  a.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  a.driver.type("o");
  a.driver.frames(2);
  const std::int32_t o = a.results().model.tokenizer->encode("o").front().id;
  REQUIRE(a.state().view.contrast);
  CHECK(*a.state().view.contrast == std::pair{o, third});  // the other one stayed
  a.driver.type("zzz");                                    // no token: what was chosen stays, and the field says why
  CHECK(*a.state().view.contrast == std::pair{o, third});
  a.driver.click("Smallest circuit");
  REQUIRE(a.quiet());
  CHECK(*a.state().view.contrast == std::pair{o, third});
}

TEST_CASE("the picture of a page is exported as it is on screen, and its numbers") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::filesystem::path folder = headscope::testing::scratch_dir("gui-export-page");
  Analyse a;
  a.app.settings().save_folder = folder;
  a.driver.click("Head ablation");
  REQUIRE(a.quiet());
  const auto exported = [&](const char* format, const char* ground) {
    a.driver.key(ImGuiKey_E, ImGuiMod_Ctrl);
    a.driver.click(format);
    if (ground) a.driver.click(ground);
    REQUIRE(a.quiet());
    a.driver.click("Export");
    REQUIRE(a.driver.until([&] { return a.app.explorer().jobs.message().has_value() || a.driver.shown("Replace"); }));
    if (a.driver.shown("Replace")) a.driver.click("Replace");  // of the same name, there already
    REQUIRE(a.driver.until([&] { return a.app.explorer().jobs.message().has_value(); }));
    const std::string said = a.app.explorer().jobs.message()->text;
    CAPTURE(said);
    CHECK(a.app.explorer().jobs.message()->level == Message::Level::info);
    const auto from = said.find(folder.string());
    REQUIRE(from != std::string::npos);
    const std::filesystem::path file = said.substr(from, said.find("  ", from) - from);
    a.driver.click("Dismiss");
    const PictureRecipe recipe = read_picture_recipe(file);
    CHECK_FALSE(recipe.page.empty());
    REQUIRE(recipe.session);
    CHECK(recipe.session->window.workspace == "Analyse");
    CHECK(recipe.session->window.pages.at("Analyse") == "ablate");
    if (std::string_view(format) != "CSV") CHECK(recipe.for_print == (ground == nullptr));
    return read_file(file);
  };
  CHECK(exported("PNG", nullptr).substr(1, 3) == "PNG");
  const std::string paper = exported("SVG", nullptr), screen = exported("SVG", "As on screen");
  CHECK(paper.find("layer ↓") != std::string::npos);
  CHECK(screen.find("layer ↓") != std::string::npos);
  CHECK(paper != screen);
  CHECK(paper.find(">Head ablation") != std::string::npos);  // of which page it is stands above it
  const std::string numbers = exported("CSV", nullptr);
  CHECK(numbers.starts_with("part,row,row_label,column,column_label,value,text\n"));
  const ModelDims& dims = a.results().run->trace->model.dims;
  std::ptrdiff_t cells = 0;
  for (std::size_t at = 0; (at = numbers.find("\nmatrix,", at)) != std::string::npos; ++at) ++cells;
  CHECK(cells == dims.layers * dims.heads);
}

}  // namespace headscope::analyse_test
