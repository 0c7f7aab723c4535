#pragma once
// The Explore workspace with a person in front of it.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "app/all_workspaces.h"
#include "app/window/app.h"
#include "tests/gui/driver.h"

namespace headscope::testing {

struct Explore {
  App app;
  ExploreWorkspace workspace;
  Driver driver;

  explicit Explore(int width = 1600, int height = 1000) : Explore(options(width, height)) {}
  explicit Explore(const AppOptions& wanted) : app(wanted), driver(app.window(), [this] { app.frame(); }) {
    app.add(workspace);
    REQUIRE(settle());
  }
  static AppOptions options(int width, int height) {
    AppOptions out;
    out.width = width, out.height = height;
    out.offscreen = out.name_items = true;
    out.check_models = false;       // what is not looked at need not be computed …
    out.measured_seconds = 0.0005;  // … nor measured for long
    out.example = "induction";      // of whose heads it is known what they do
    return out;
  }
  const AppState& state() { return app.explorer().state(); }
  const Results& results() { return app.explorer().results(); }
  /// What is on screen under names that begin so, from the last frame.
  std::vector<Item> items(const std::string& prefix) {
    driver.frames(2);
    std::vector<Item> out;
    for (const Item& item : app.window().items().items())
      if (item.label.starts_with(prefix)) out.push_back(item);
    return out;
  }
  /// Until the run, its numbers and all pictures have come.
  bool settle() {
    int quiet = 0;
    return driver.until([&] {
      quiet = app.settled() && results().facts && results().run && results().facts->trace == results().run->trace
                  ? quiet + 1
                  : 0;
      return quiet > 8;
    });
  }
};

}  // namespace headscope::testing
