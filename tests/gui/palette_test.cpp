// What people type into the palette: names of the field, abbreviations, spellings; each finds what it stands for.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "app/actions/palette.h"
#include "app/all_workspaces.h"
#include "core/base/file.h"
#include "core/edits/intervention.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::palette_test {

TEST_CASE(
    "the palette finds first or second what the field calls it, for every page, workspace and action of the list") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = testing::Explore::options(1280, 720);
  options.example = "tiny-gpt2";
  App app(options);
  const AllWorkspaces workspaces(app);
  testing::Driver driver(app.window(), [&] { app.frame(); });
  REQUIRE(driver.until([&] { return app.settled() && app.explorer().results().facts; }, 6000));
  // So that there is something to undo, to redo and to switch off.
  DocumentEditor& editor = app.explorer().editor;
  for (const char* edit : {"0.0: ablate zero", "0.1: ablate zero"}) {
    auto edits = editor.document().edits;
    edits.push_back(parse_intervention(edit, "test"));
    editor.set_edits(std::move(edits));
    editor.history().close_step();
  }
  editor.undo();
  REQUIRE(driver.until([&] { return app.settled(); }, 6000));
  const AppContext context{app.explorer(), app.settings(), app.requests()};
  REQUIRE(driver.until([&] { return !app.explorer().lessons.list().empty(); }));
  const auto items = palette_items(context);
  const std::filesystem::path file = testing::source_dir() / "tests/gui/palette_queries.txt";
  std::istringstream lines(read_file(file, 1 << 20));
  int queries = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with('#') || colon == std::string::npos) continue;
    const std::string id = line.substr(0, colon);
    REQUIRE_MESSAGE(std::ranges::count(items, id, &PaletteItem::id) == 1, id);
    std::istringstream rest(line.substr(colon + 2));
    for (std::string query; std::getline(rest, query, ';'); ++queries) {
      query.erase(0, query.find_first_not_of(' '));
      const auto hits = search_palette(items, query, 2);
      std::string found;
      for (const PaletteHit& hit : hits) found += fmt::format(" {} \"{}\"", items[hit.item].id, items[hit.item].title);
      CHECK_MESSAGE(std::ranges::any_of(hits, [&](const PaletteHit& hit) { return items[hit.item].id == id; }),
                    "\"" << query << "\" for " << id << ", found:" << found);
    }
  }
  CHECK(queries >= 400);
  // Every page and workspace is asked for by something.
  const std::string all = read_file(file, 1 << 20);
  for (const PaletteItem& item : items)
    if (item.id.starts_with("lesson/"))
      CHECK_MESSAGE(std::ranges::any_of(search_palette(items, item.title, 2),
                                        [&](const PaletteHit& hit) { return items[hit.item].id == item.id; }),
                    item.title);
    else if (item.id.starts_with("glossary/"))
      CHECK_MESSAGE(std::ranges::any_of(search_palette(items, item.title, 3),
                                        [&](const PaletteHit& hit) { return items[hit.item].id == item.id; }),
                    item.title);
    else if (item.id.find('/') != std::string::npos && !item.id.starts_with("mask/"))
      CHECK_MESSAGE(all.find("\n" + item.id + ": ") != std::string::npos, item.id);
}

}  // namespace headscope::palette_test
