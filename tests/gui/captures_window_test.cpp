// Attention that another program captured, in the window: its views, what it does not have, and a watched folder.

#include <fstream>

#include "core/base/file.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::captures_window_test {

using testing::Explore;
using testing::reference;
using testing::scratch_dir;
namespace fs = std::filesystem;

namespace {

struct Captured : Explore {
  explicit Captured(const AppOptions& wanted = options(1600, 1000)) : Explore(wanted) {}
  void open(const fs::path& file) {
    app.explorer().captures.open(file);
    REQUIRE(still());
    REQUIRE(results().capture);
  }
  bool still() {
    int quiet = 0;
    return driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 8; }, 6000);
  }
  void view(const char* name) {
    if (std::string_view(name) == "Map") {  // the atlas has one too
      const Item next = driver.item("Arcs");
      driver.click_at({next.min.x - 20, next.center().y});
    } else {
      driver.click(name);
    }
    REQUIRE(still());
    CAPTURE(name);
    if (app.explorer().jobs.message()) FAIL_CHECK(app.explorer().jobs.message()->text);
  }
};

}  // namespace

TEST_CASE("every view of attention between two texts draws, and scores are said not to be there") {
  HEADSCOPE_NEEDS_DISPLAY();
  Captured c;
  c.open(reference("attention") / "cross.npz");
  CHECK_FALSE(c.driver.shown("Picture"));  // there is none
  const std::pair<const char*, HeadView> views[] = {{"Arcs", HeadView::arcs},   {"Row", HeadView::row},
                                                    {"Steps", HeadView::steps}, {"q·k", HeadView::qk},
                                                    {"Map", HeadView::map},     {"Heads", HeadView::heads}};
  for (const auto& [name, view] : views) {
    c.view(name);
    CHECK(c.state().view.head_view == view);
    const bool needs_scores = view == HeadView::steps || view == HeadView::qk;
    CHECK(c.driver.shown("A capture holds no scores") == needs_scores);
  }
  CHECK(c.results().run->trace->between_texts());
  CHECK(c.results().model.model == nullptr);
}

TEST_CASE("attention over a picture has a view of its own") {
  HEADSCOPE_NEEDS_DISPLAY();
  Captured c;
  c.open(reference("attention") / "picture.npz");
  c.view("Picture");
  CHECK(c.state().view.head_view == HeadView::picture);
  c.view("Map");
  CHECK(c.state().view.head_view == HeadView::map);
  // Another capture, without a picture, shows what it has.
  c.view("Picture");
  c.open(reference("attention") / "cross.npz");
  CHECK_FALSE(c.driver.shown("Picture"));
}

TEST_CASE("a watched folder lists its files, a click shows one, and a broken one says why") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-captures");
  const auto put = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::seconds(60));
  };
  const std::string cross = read_file(reference("attention") / "cross.npz");
  put("a.npz", cross);
  put("b.npz", read_file(reference("attention") / "picture.npz"));
  put("c.npz", cross.substr(0, 200));
  AppOptions wanted = Captured::options(1600, 1000);
  wanted.watch = folder;
  Captured c(wanted);
  REQUIRE(c.driver.until([&] { return c.driver.shown("capture a.npz") && c.results().capture; }, 6000));
  c.view("capture a.npz");
  CHECK(c.state().document.model == folder / "a.npz");
  c.view("capture b.npz");
  CHECK(c.state().document.model == folder / "b.npz");
  REQUIRE(c.driver.until(
      [&] {
        const auto& files = c.app.explorer().captures.files();
        return std::ranges::any_of(files, [](const auto& f) { return f.state == CaptureWatch::State::broken; });
      },
      6000));
  c.driver.hover("capture c.npz");
  c.driver.frames(3);
  CHECK(c.driver.told("c.npz"));
  c.driver.click("capture c.npz");
  REQUIRE(c.still());
  CHECK(c.state().document.model == folder / "b.npz");
}

}  // namespace headscope::captures_window_test
