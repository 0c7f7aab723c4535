#pragma once
// The Analyse workspace on a bundled model, with a person in front of it.

#include <string_view>

#include "tests/gui/explore.h"

namespace headscope::testing {

struct AnalysePage {
  App app;
  ExploreWorkspace explore;
  AnalyseWorkspace analyse;
  Driver driver;

  explicit AnalysePage(const char* example, int width = 1600, int height = 1000)
      : AnalysePage(options(example, width, height)) {}
  explicit AnalysePage(const AppOptions& wanted)
      : app(wanted), analyse(app.explorer().jobs, app.explorer().run), driver(app.window(), [this] { app.frame(); }) {
    app.add(explore);
    app.add(analyse);
    REQUIRE(settle());
  }
  static AppOptions options(const char* example, int width, int height) {
    AppOptions out = Explore::options(width, height);
    out.example = example;
    return out;
  }
  const AppState& state() { return app.explorer().state(); }
  const Results& results() { return app.explorer().results(); }
  bool settle() {
    int quiet = 0;
    return driver.until(
        [&] {
          quiet = app.settled() && results().run ? quiet + 1 : 0;
          return quiet > 8;
        },
        6000);
  }
  /// Through the palette, as somebody who knows its name does.
  void open(std::string_view words) {
    driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
    driver.frames(2);
    driver.type(words);
    driver.frames(2);
    driver.key(ImGuiKey_Enter);
    REQUIRE(settle());
    if (app.explorer().jobs.message()) FAIL_CHECK(app.explorer().jobs.message()->text);
  }
  /// The same, and that this page came up with this on it.
  void open(std::string_view words, const std::string& id, std::string_view item) {
    open(words);
    CHECK(app.settings().pages["Analyse"] == id);
    CHECK_MESSAGE(driver.shown(item), id << " without " << std::string(item));
  }
  void choose(std::string_view item) {
    driver.click(item);
    REQUIRE(settle());
    if (app.explorer().jobs.message()) FAIL_CHECK(app.explorer().jobs.message()->text);
  }
  /// Brightness in the middle of what has a name, 0 … 3 · 255.
  int light(std::string_view name) {
    const ImVec2 at = driver.item(name).center();
    const Color seen = app.window().capture().at(static_cast<int>(at.x), static_cast<int>(at.y));
    return seen.r + seen.g + seen.b;
  }
};

}  // namespace headscope::testing
