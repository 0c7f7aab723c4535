// What is chosen on pages comes back with a session.

#include <array>
#include <filesystem>
#include <string>

#include "app/workspaces/analyse/page.h"
#include "tests/gui/whole_program.h"
#include "tests/support/paths.h"

namespace headscope::session_choices_test {

using testing::Explore;
using testing::Program;
using testing::scratch_dir;
namespace fs = std::filesystem;

TEST_CASE(
    "what is chosen on pages of experts, a state and patches comes back with the session, on models that have them") {
  HEADSCOPE_NEEDS_DISPLAY();
  static constexpr std::array<const char*, 3> choices[] = {{"experts", "All layers", "tiny-mixtral"},
                                                           {"state", "Lanes of a layer", "tiny-mamba"},
                                                           {"patches", "Grid of positions", "tiny-vit"}};
  const auto kept = [](Program& p) {
    ControlsRecord record;
    p.workspaces.analyse.controls(record);
    return record.text();
  };
  for (const auto& [page, control, example] : choices) {
    CAPTURE(page);
    const auto open = [&](Program& p) {
      p.app.requests().workspace = workspace_index("Analyse");
      p.app.settings().pages["Analyse"] = page;
      int quiet = 0;
      REQUIRE(p.driver.until([&] { return (quiet = p.app.settled() ? quiet + 1 : 0) > 8; }, 6000));
    };
    const fs::path file = scratch_dir("gui-session-of-kind") / "session.json";
    AppOptions options = Explore::options(1600, 1200);
    options.example = example;
    std::string chosen;
    {
      Program p(options);
      open(p);
      const std::string before = kept(p);
      p.driver.click(control);
      open(p);
      chosen = kept(p);
      CHECK(chosen != before);
      p.app.explorer().files.save(file);
    }
    options.session = file;
    Program p(options);
    open(p);
    CHECK(kept(p) == chosen);
  }
}

TEST_CASE("the layer and the capacity of experts come back with the session") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path file = scratch_dir("gui-session-experts") / "session.json";
  AppOptions options = Explore::options(1600, 1200);
  options.example = "tiny-mixtral";
  const auto record = [](Program& p) {
    ControlsRecord out;
    p.workspaces.analyse.controls(out);
    return out.text();
  };
  const auto open = [](Program& p) {
    p.app.requests().workspace = workspace_index("Analyse");
    p.app.settings().pages["Analyse"] = "experts";
    REQUIRE(p.driver.until([&] { return p.app.settled() && p.driver.shown("routing"); }, 6000));
  };
  std::string chosen;
  {
    Program p(options);
    open(p);
    for (const char* control : {"Layer", "Capacity factor"}) {
      CAPTURE(control);
      const std::string before = record(p);
      const Item item = p.driver.item(control);
      p.driver.click_at({item.min.x + 0.8f * (item.max.x - item.min.x), item.center().y});
      p.driver.frames(2);
      CHECK(record(p) != before);
    }
    chosen = record(p);
    CHECK(chosen.find("capacity") != std::string::npos);
    p.app.explorer().files.save(file);
  }
  options.session = file;
  Program p(options);
  open(p);
  CHECK(record(p) == chosen);
}

}  // namespace headscope::session_choices_test
