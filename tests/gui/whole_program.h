#pragma once
// The whole program under test, for tests of what outlives it.

#include <filesystem>
#include <functional>
#include <utility>

#include "app/all_workspaces.h"
#include "tests/gui/explore.h"
#include "tests/support/small_recipe.h"

namespace headscope::testing {

inline std::size_t entries(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder)) return 0;
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

/// The whole program, as main.cpp puts it together, on a clock of its own.
struct Program {
  double time = 0;
  App app;
  AllWorkspaces workspaces{app};
  Driver driver{app.window(), [this] { app.frame(); }};

  explicit Program(AppOptions options) : app(with_clock(std::move(options))) {
    REQUIRE(driver.until([&] { return app.settled() && app.explorer().results().facts; }));
  }
  std::function<void()> each_turn = [] {};
  AppOptions with_clock(AppOptions options) {
    options.clock = [this] {
      each_turn();
      return time += 0.01;
    };
    return options;
  }
  const AppState& state() { return app.explorer().state(); }
  void quit() { driver.key(ImGuiKey_Q, ImGuiMod_Ctrl); }

  void train_to(std::int64_t step) {
    TrainingController& controller = workspaces.training;
    Recipe& draft = controller.draft();
    draft = small_recipe();
    draft.steps = draft.optimizer.schedule_steps = 1000;
    controller.start();
    controller.pause_at(step);
    REQUIRE(driver.until(
        [&] { return controller.progress().step == step && controller.phase() == TrainingController::Phase::paused; },
        20'000));
  }
};

/// Settings and unsaved work in `folder`.
inline AppOptions kept_in(const std::filesystem::path& folder) {
  AppOptions options = Explore::options(1280, 720);
  options.settings = folder / "settings.json";
  options.recovery = folder / "recovery";
  return options;
}

}  // namespace headscope::testing
