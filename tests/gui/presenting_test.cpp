// Presenting with a person in front of it: scenes put on the list and shown, the spotlight, and the window with notes.

#include <imgui_internal.h>

#include "core/base/file.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"
#include "tests/support/variable.h"

namespace headscope::presenting_test {

namespace {

const char* const lesson_text =
    "---\ntitle: Two steps\nmodel: induction\ntext: Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Qu\n"
    "minutes: 2\n---\n## First\nProse.\n> There are *{tokens()}* tokens.\n```show\nhead: 1.0\nrow: 20\n```\n"
    "## Second\nMore.\n```show\nworkspace: Analyse\npage: lens\n```\n";

struct Stage : testing::Explore {
  static inline double time = 0;
  std::filesystem::path own = testing::scratch_dir("presenting");
  testing::Variable data{"XDG_DATA_HOME", own.string()};
  AnalyseWorkspace analyse{app.explorer().jobs, app.explorer().run};
  MechanismsWorkspace mechanisms{app.explorer().jobs, app.explorer().editor, app.explorer().run};
  LessonController& lessons = app.explorer().lessons;

  explicit Stage(int width = 1280) : Explore(staged(width)) {
    app.add(analyse);
    app.add(mechanisms);
    driver.frames(2);
  }
  static AppOptions staged(int width) {
    AppOptions out = options(width, width == 1280 ? 720 : 1000);
    time = 0;
    out.clock = [] { return time; };
    return out;
  }
  void take(const std::string& text) {
    lessons.open(std::make_shared<const Lesson>(parse_lesson(text, "x", "x.md")));
    REQUIRE(driver.until([&] { return lessons.lesson() && lessons.told(); }, 6000));
    REQUIRE(settle());
  }
  void present() {
    driver.key(ImGuiKey_F11);
    driver.frames(4);
    REQUIRE(app.requests().presenting);
  }
  Window* notes() { return app.presenter().window(); }
  /// A key in the window with the notes.
  void key_in_notes(ImGuiKey key) {
    notes()->within([&] { ImGui::GetIO().AddKeyEvent(key, true); });
    driver.frames(2);
    if (notes()) notes()->within([&] { ImGui::GetIO().AddKeyEvent(key, false); });
    driver.frames(2);
  }
  bool noted(const std::string& label) { return notes() && notes()->items().find(label).has_value(); }
};

}  // namespace

TEST_CASE("scenes are put on the list, named, moved, taken off and presented, by keys and clicks") {
  HEADSCOPE_NEEDS_DISPLAY();
  Stage s;
  const auto titles = [&] {
    std::vector<std::string> out;
    for (const std::string& each : s.app.explorer().scenes.pages().steps) out.push_back(step_title(each));
    return out;
  };
  const auto until_titles = [&](const std::vector<std::string>& wanted) {
    return s.driver.until([&] { return titles() == wanted; });
  };
  s.app.explorer().editor.select({1, 0});
  s.driver.frames(2);
  s.driver.key(ImGuiKey_F7);
  REQUIRE(until_titles({"Head 1.0"}));
  s.driver.key(ImGuiKey_F8);
  REQUIRE(s.driver.until([&] { return s.driver.shown("show scene 1"); }));
  s.driver.click("Add what is on the screen");
  REQUIRE(until_titles({"Head 1.0", "Head 1.0"}));
  s.driver.frames(3);
  s.driver.double_click("title of scene 2");  // a word of it
  s.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  s.driver.type("The end");
  CHECK(titles().back() == "Head 1.0");  // not while it is being written
  s.driver.key(ImGuiKey_Enter);
  REQUIRE(until_titles({"Head 1.0", "The end"}));
  s.driver.frames(3);
  s.driver.click("scene up 2");
  REQUIRE(until_titles({"The end", "Head 1.0"}));
  s.driver.frames(3);
  s.driver.click("remove scene 1");
  REQUIRE(until_titles({"Head 1.0"}));
  s.driver.frames(3);
  s.driver.click("Undo");
  REQUIRE(until_titles({"The end", "Head 1.0"}));
  s.driver.frames(3);
  s.driver.click("show scene 2");
  REQUIRE(s.driver.until([&] { return s.lessons.lesson() != nullptr; }));
  CHECK(s.lessons.at() == 1);
  CHECK_FALSE(s.app.requests().presenting);
  s.driver.frames(3);
  s.driver.key(ImGuiKey_F11, ImGuiMod_Shift);
  REQUIRE(s.driver.until([&] { return s.app.requests().presenting; }));
  CHECK(s.lessons.at() == 0);
  CHECK(s.lessons.step().title == "The end");
  // A scene without words leaves the picture more room than one with prose.
  REQUIRE(s.settle());
  const float slim = s.driver.item("head").min.x;
  s.take(lesson_text);
  s.driver.frames(3);
  CHECK(s.driver.item("head").min.x > slim + 100);
}

TEST_CASE("a title that is being written is kept where its panel goes, and one that is not taken does not stay") {
  HEADSCOPE_NEEDS_DISPLAY();
  Stage s;
  const SceneList& scenes = s.app.explorer().scenes;
  const auto title = [&] { return scenes.pages().steps.empty() ? "" : step_title(scenes.pages().steps.front()); };
  const auto write = [&](std::string_view item, std::string_view text) {
    s.driver.double_click(item);
    s.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
    s.driver.key(ImGuiKey_Delete);
    s.driver.type(text);
  };
  s.app.explorer().editor.select({1, 0});
  s.driver.frames(2);
  s.driver.key(ImGuiKey_F7);
  REQUIRE(s.driver.until([&] { return title() == "Head 1.0"; }));
  s.driver.key(ImGuiKey_F8);
  REQUIRE(s.driver.until([&] { return s.driver.shown("show scene 1"); }));
  const auto gone = [&] { return s.driver.until([&] { return !s.driver.shown("show scene 1"); }); };
  write("title of scene 1", "Beside");
  s.driver.click_at({20, 400});  // beside the panel, which closes
  REQUIRE(gone());
  REQUIRE(s.driver.until([&] { return title() == "Beside"; }));
  s.driver.key(ImGuiKey_F8);
  REQUIRE(s.driver.until([&] { return s.driver.shown("show scene 1"); }));
  write("title of scene 1", "Kept");
  s.app.requests().keys = true;  // another panel takes its place: the line is never asked again
  REQUIRE(gone());
  CHECK(s.driver.until([&] { return title() == "Kept"; }));
  s.driver.key(ImGuiKey_Escape);
  s.driver.frames(3);
  s.driver.key(ImGuiKey_F8);
  REQUIRE(s.driver.until([&] { return s.driver.shown("show scene 1"); }));
  const auto picture = [&] {
    s.driver.move_to({5, 5});
    s.driver.frames(4);
    const Item row = s.driver.item("title of scene 1");
    const Image all = s.driver.window().capture();
    std::vector<std::uint8_t> out;
    for (auto y = static_cast<int>(row.min.y); y < static_cast<int>(row.max.y); ++y)
      for (auto x = static_cast<int>(row.min.x); x < static_cast<int>(row.max.x); ++x)
        for (int channel = 0; channel < 3; ++channel)
          out.push_back(all.rgba[static_cast<std::size_t>(4 * (y * all.width + x) + channel)]);
    return out;
  };
  const auto before = picture();
  write("title of scene 1", "");
  s.driver.key(ImGuiKey_Enter);
  REQUIRE(s.settle());
  CHECK(title() == "Kept");
  CHECK(picture() == before);  // not a blank line
  // The file cannot be written: the line says what the scene is called.
  write_file_atomically(scenes.file(), "no lesson");
  write("title of scene 1", "Lost");
  s.driver.key(ImGuiKey_Enter);
  REQUIRE(s.driver.until([&] { return s.app.explorer().jobs.message().has_value(); }));
  CHECK(title() == "Kept");
  CHECK(picture() == before);
}

TEST_CASE(
    "the spotlight lights the pinned row while presenting, and a disc round the pointer where nothing is pinned") {
  HEADSCOPE_NEEDS_DISPLAY();
  Stage s;
  s.take(lesson_text);
  s.driver.key(ImGuiKey_L);
  s.driver.frames(3);
  CHECK_FALSE(s.app.requests().spotlight);  // not while working
  s.present();
  s.driver.move_to({5, 5});
  REQUIRE(s.settle());
  const Image before = s.driver.window().capture();
  s.driver.key(ImGuiKey_L);
  s.driver.frames(4);
  const auto areas = [&] {
    std::vector<Item> out;
    for (const Item& item : s.driver.window().items().items())
      if (item.label == "lit") out.push_back(item);
    return out;
  };
  REQUIRE_FALSE(areas().empty());
  const Image after = s.driver.window().capture();
  const auto light = [](const Image& image, ImVec2 at) {
    const auto i =
        4 * (static_cast<std::size_t>(at.y) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(at.x));
    return image.rgba[i] + image.rgba[i + 1] + image.rgba[i + 2];
  };
  // The row is as it was, all around it is darker.
  const Item row = areas().front();
  const float y = row.center().y;
  int same = 0, darker = 0, all = 0;
  for (float x = row.min.x + 2; x < row.max.x - 2; x += 3, ++all) {
    same += light(before, {x, y}) == light(after, {x, y});
    darker +=
        light(after, {x, row.min.y - 4}) < light(before, {x, row.min.y - 4}) || light(before, {x, row.min.y - 4}) == 0;
  }
  CHECK(same == all);
  CHECK(darker > all / 2);
  CHECK(light(after, {20, 300}) < light(before, {20, 300}));
  s.app.explorer().editor.pin(std::nullopt);
  s.driver.move_to({200, 600});  // where there is nothing
  s.driver.frames(4);
  REQUIRE(areas().size() == 1);
  CHECK(areas().front().center().x == doctest::Approx(200));
  s.driver.key(ImGuiKey_F11);
  s.driver.frames(4);
  CHECK(areas().empty());
  CHECK_FALSE(s.app.requests().spotlight);
}

TEST_CASE("notes and time stand in a window of their own, whose keys go on as in slides") {
  HEADSCOPE_NEEDS_DISPLAY();
  Stage s;
  s.take(lesson_text);
  s.driver.key(ImGuiKey_F12);
  s.driver.frames(3);
  CHECK_FALSE(s.notes());  // there is nothing to be presented yet
  s.present();
  Stage::time = 100;
  s.driver.frames(1);
  ImGuiContext* const own = ImGui::GetCurrentContext();
  s.driver.key(ImGuiKey_F12);
  s.driver.frames(4);
  REQUIRE(s.notes());
  CHECK(ImGui::GetCurrentContext() == own);
  CHECK(s.noted("elapsed 1:40"));  // since presenting began, not since the window is there
  CHECK(s.driver.shown("Next"));   // the first one draws as before
  CHECK(s.lessons.told()->notes.front().find("58") != std::string::npos);
  Stage::time = 165;
  s.driver.frames(2);
  CHECK(s.noted("elapsed 2:45"));
  CHECK(s.noted("of 2 min"));
  const Image picture = s.notes()->capture();
  CHECK(picture.width == 960);
  CHECK(ImGui::GetCurrentContext() == own);
  s.key_in_notes(ImGuiKey_Space);
  REQUIRE(s.settle());
  CHECK(s.lessons.at() == 1);
  s.key_in_notes(ImGuiKey_LeftArrow);
  REQUIRE(s.settle());
  CHECK(s.lessons.at() == 0);
  s.key_in_notes(ImGuiKey_L);
  CHECK(s.app.requests().spotlight);
  // Its own key closes it, and so does the window's cross; the clock goes on.
  s.key_in_notes(ImGuiKey_F12);
  CHECK_FALSE(s.notes());
  s.driver.key(ImGuiKey_F12);
  s.driver.frames(3);
  REQUIRE(s.notes());
  CHECK(s.noted("elapsed 2:45"));
  s.notes()->close();
  s.driver.frames(3);
  CHECK_FALSE(s.notes());
  CHECK_FALSE(s.app.window().closing());
  // The end of presenting ends it.
  s.driver.key(ImGuiKey_F12);
  s.driver.frames(3);
  REQUIRE(s.notes());
  s.key_in_notes(ImGuiKey_Escape);
  CHECK_FALSE(s.app.requests().presenting);
  CHECK_FALSE(s.notes());
  CHECK(s.app.presenter().elapsed() == 0);
  // The program ends while it is there.
  s.present();
  s.driver.key(ImGuiKey_F12);
  s.driver.frames(3);
  CHECK(s.notes());
}

TEST_CASE("keys of the first window do there what they do without notes; both are enlarged alike") {
  HEADSCOPE_NEEDS_DISPLAY();
  Stage s;
  s.driver.click("Mechanisms");
  REQUIRE(s.driver.until([&] { return s.driver.shown("Steps"); }));
  s.driver.click("Steps");  // the keyboard is the page's, not its list's
  s.take(
      "---\ntitle: A cell\nmodel: induction\ntext: Mr and Mrs Quill of Fox Hythe kept bees.\n---\n"
      "## First\n```show\nworkspace: Mechanisms\npage: softmax\nhead: 0.0\n```\n");
  MechanismController& controller = s.mechanisms.controller();
  REQUIRE(s.driver.until([&] { return s.app.settled() && controller.current() && controller.page(); }, 6000));
  s.present();
  s.driver.key(ImGuiKey_F12);
  s.driver.frames(4);
  REQUIRE(s.notes());
  controller.pinned = MechanismCell{"dots", 5, 2};
  s.driver.frames(3);
  const HeadId head = s.state().document.selected;
  s.driver.key(ImGuiKey_DownArrow);
  s.driver.frames(3);
  REQUIRE(controller.pinned);
  CHECK(*controller.pinned == MechanismCell{"dots", 6, 2});
  CHECK(s.state().document.selected == head);
  controller.pinned.reset();
  const double before = s.notes()->zoom();
  s.driver.key(ImGuiKey_Equal, ImGuiMod_Ctrl);
  s.driver.frames(3);
  CHECK(s.notes()->zoom() == doctest::Approx(1.1 * before));
  // Nobody said how long it should take: the time it takes, and no more.
  Stage::time = 400;
  s.driver.frames(2);
  CHECK(s.noted("elapsed 6:40"));
  CHECK_FALSE(s.noted("of 5 min"));
}

TEST_CASE("a clock tells hours where there are any") {
  CHECK(clock_text(0) == "0:00");
  CHECK(clock_text(65.9) == "1:05");
  CHECK(clock_text(3600 + 120 + 3) == "1:02:03");
  CHECK(clock_text(-5) == "0:00");
}

}  // namespace headscope::presenting_test
