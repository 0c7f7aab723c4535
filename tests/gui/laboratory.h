#pragma once
// The Mechanisms workspace in a window, to be used as a person uses it.

#include <doctest/doctest.h>

#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "tests/gui/explore.h"

namespace headscope::testing {

struct Laboratory {
  Laboratory() { e.app.add(mechanisms); }
  explicit Laboratory(const char* example) : e(wanted(example)) { e.app.add(mechanisms); }
  static AppOptions wanted(const char* example) {
    AppOptions out = Explore::options(1600, 1000);
    out.example = example;
    return out;
  }
  /// The page of this mechanism.
  void open(const char* mechanism) {
    e.app.settings().pages["Mechanisms"] = mechanism;
    e.driver.frames(2);
    e.driver.click("Mechanisms");
    REQUIRE(settled());
    REQUIRE(mechanisms.controller().mechanism().id == mechanism);
  }
  /// Until the page on screen is that of what is chosen, and nothing moves any more.
  bool settled() {
    int quiet = 0;
    return e.driver.until(
        [&] { return (quiet = e.app.settled() && mechanisms.controller().current() ? quiet + 1 : 0) > 8; }, 20'000);
  }
  Explore e;
  MechanismsWorkspace mechanisms{e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run};
};

}  // namespace headscope::testing
