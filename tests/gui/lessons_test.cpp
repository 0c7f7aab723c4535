// Lessons with a person in front of them: list, keys, clicks, wrong and right answers, wandering off, coming back; and
// that every page a bundled lesson names is there.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "app/actions/palette.h"
#include "app/all_workspaces.h"
#include "app/state/lesson_session.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"
#include "viz/export/glyphs.h"

namespace headscope::lessons_test {

namespace {
std::vector<std::filesystem::path> bundled() {
  std::vector<std::filesystem::path> files;
  for (const auto& each : std::filesystem::directory_iterator(testing::source_dir() / "assets/lessons"))
    files.push_back(each.path());
  return files;
}

struct Class : testing::Explore {
  MechanismsWorkspace mechanisms{app.explorer().jobs, app.explorer().editor, app.explorer().run};
  AnalyseWorkspace analyse{app.explorer().jobs, app.explorer().run};
  LessonController& lessons = app.explorer().lessons;
  explicit Class(int width = 1600) : Explore(width, width == 1280 ? 720 : 1000) {
    app.add(mechanisms);
    app.add(analyse);
    driver.frames(2);
  }
  void take(const std::string& id) {
    lessons.open(id);
    REQUIRE(driver.until([&] { return lessons.lesson() && lessons.told(); }, 6000));
    REQUIRE(settle());
  }
  void answered() {
    REQUIRE(driver.until([&] { return lessons.answer() != nullptr; }, 6000));
    driver.frames(3);
  }
};
}  // namespace

TEST_CASE("a lesson is played through with mouse and keys: wrong, right, off and back again") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const int width : {1600, 1280}) {
    CAPTURE(width);
    Class c(width);
    c.app.explorer().editor.set_text("my own text");
    REQUIRE(c.settle());
    c.take("01-who-is-she");
    CHECK(c.state().document.text.find("Anna") != std::string::npos);
    CHECK(c.state().document.selected == HeadId{0, 2});
    c.driver.click("Next");
    REQUIRE(c.settle());
    CHECK(c.lessons.at() == 1);
    // A wrong token, then the right one, by clicks.
    const auto& tokens = c.results().run->trace->tokens;
    const auto anna = std::ranges::find_if(tokens, [](const Token& t) { return t.bytes == " Anna"; }) - tokens.begin();
    c.driver.click("guess token 0");
    c.answered();
    CHECK_FALSE(c.lessons.answer()->right);
    c.driver.click("guess token " + std::to_string(anna));
    REQUIRE(c.driver.until([&] { return c.lessons.answer() && c.lessons.answer()->right; }, 6000));
    // On by a key; a choice by a click.
    c.driver.key(ImGuiKey_F4);
    REQUIRE(c.settle());
    CHECK(c.lessons.at() == 2);
    c.driver.click("choice 2");
    c.answered();
    CHECK(c.lessons.answer()->right);
    // Off: another head and an edit; one key comes back.
    c.driver.key(ImGuiKey_F4);
    REQUIRE(c.settle());
    c.app.explorer().editor.set_edits({parse_intervention("0.2: ablate zero", "here")});
    REQUIRE(c.settle());
    REQUIRE(c.driver.until([&] { return c.lessons.answer() && c.lessons.answer()->right; }, 6000));
    CHECK(c.driver.shown("Show again"));
    c.driver.key(ImGuiKey_F6);
    REQUIRE(c.settle());
    CHECK(c.state().document.edits.empty());
    c.driver.key(ImGuiKey_F3);
    REQUIRE(c.settle());
    CHECK(c.lessons.at() == 2);
    c.driver.click("leave the lesson");
    REQUIRE(c.settle());
    CHECK_FALSE(c.lessons.lesson());
    CHECK(c.state().document.text == "my own text");
  }
}

TEST_CASE("presenting shows the picture and the prose alone, and goes on by the keys of slides") {
  HEADSCOPE_NEEDS_DISPLAY();
  Class c(1280);
  c.take("01-who-is-she");
  const float before = c.driver.item("Next").min.x;
  CHECK(c.driver.shown("Ctrl K"));
  c.driver.key(ImGuiKey_F11);
  c.driver.frames(4);
  CHECK_FALSE(c.driver.shown("Ctrl K"));
  CHECK(c.app.window().theme().id == "projector");
  CHECK(c.state().view.theme == "dark");  // is not changed by it
  CHECK(c.driver.item("Next").min.x >= before);
  for (const auto& [key, at] : {std::pair{ImGuiKey_Space, 1},
                                {ImGuiKey_RightArrow, 2},
                                {ImGuiKey_PageDown, 3},
                                {ImGuiKey_PageUp, 2},
                                {ImGuiKey_LeftArrow, 1}}) {
    c.driver.key(key);
    REQUIRE(c.settle());
    CHECK(c.lessons.at() == at);
    CHECK(c.state().document.selected == HeadId{0, 2});  // no head was walked
  }
  c.driver.key(ImGuiKey_F11);
  c.driver.frames(4);
  CHECK(c.driver.shown("Ctrl K"));
  CHECK(c.app.window().theme().id == "dark");
}

TEST_CASE("in a small window the lesson and the column on the left take turns; the next step brings the lesson back") {
  HEADSCOPE_NEEDS_DISPLAY();
  {
    Class c(1280);
    c.take("01-who-is-she");
    CHECK_FALSE(c.driver.shown("##prompt"));
    c.driver.click("Panel");
    c.driver.frames(3);
    CHECK(c.driver.shown("##prompt"));
    CHECK_FALSE(c.driver.shown("Next"));
    c.driver.click("Lesson");
    c.driver.frames(3);
    CHECK(c.driver.shown("Next"));
    c.driver.click("Panel");
    c.driver.frames(3);
    c.driver.key(ImGuiKey_F4);
    REQUIRE(c.settle());
    CHECK(c.lessons.at() == 1);
    CHECK(c.driver.shown("Next"));
    // A step with something to do: while it is presented, too.
    c.lessons.go(3);
    c.app.requests().presenting = true;
    REQUIRE(c.settle());
    c.driver.click("Panel");
    c.driver.frames(3);
    CHECK(c.driver.shown("##prompt"));
  }
  // Where both have room there is nothing to choose.
  Class wide(1600);
  wide.take("01-who-is-she");
  CHECK_FALSE(wide.driver.shown("Panel"));
  CHECK(wide.driver.shown("##prompt"));
}

TEST_CASE("lessons are found by key and palette") {
  HEADSCOPE_NEEDS_DISPLAY();
  Class c;
  c.driver.key(ImGuiKey_F2);
  REQUIRE(c.driver.until([&] { return c.driver.shown("Close"); }));
  REQUIRE(c.driver.until([&] { return !c.lessons.list().empty(); }));
  c.driver.click("Close");
  c.driver.frames(3);
  c.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  c.driver.frames(3);
  c.driver.type("which word does she");
  c.driver.frames(3);
  c.driver.key(ImGuiKey_Enter);
  REQUIRE(c.driver.until([&] { return c.lessons.lesson() != nullptr; }));
  CHECK(c.lessons.lesson()->id == "01-who-is-she");
}

TEST_CASE("a number is typed, also with a comma and a minus as they are printed") {
  HEADSCOPE_NEEDS_DISPLAY();
  Class c;
  c.lessons.open(std::make_shared<const Lesson>(parse_lesson(
      "---\ntitle: t\nmodel: induction\ntext: Mr and Mrs Qu\n---\n## a\nb\n```question\nkind: number\nask: "
      "a\nanswer: 0 - tokens() / 2\nwithin: 0.01\nbecause: c\n```\n",
      "x", "x.md")));
  REQUIRE(c.driver.until([&] { return c.lessons.told() != nullptr; }, 6000));
  REQUIRE(c.settle());
  c.driver.click("##lesson number");
  c.driver.type("−6,5");
  c.driver.frames(2);
  c.driver.click("Check");
  c.answered();
  CHECK(c.lessons.answer()->right);
}

TEST_CASE("pages work while the column on their left is closed, as it is beside a lesson in a small window") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = testing::Explore::options(1280, 720);
  options.example = "tiny-llama";
  App app(options);
  AllWorkspaces workspaces(app);
  testing::Driver driver(app.window(), [&] { app.frame(); });
  app.explorer().editor.view().left_open = false;
  app.settings().pages["Positions"] = "rope";
  app.requests().workspace = workspace_index("Positions");
  CHECK(driver.until([&] { return driver.shown("Dials"); }, 3000));
  app.requests().workspace = workspace_index("Generate");
  REQUIRE(driver.until([&] { return workspaces.generation.ready(); }, 3000));
  app.requests().generation = UiRequests::Generation::step;
  CHECK(driver.until([&] { return workspaces.generation.branch().steps.size() == 1; }, 3000));
  app.settings().pages["Compare"] = "model";
  app.requests().workspace = workspace_index("Compare");
  CHECK(driver.until([&] { return workspaces.comparison.with() == CompareController::With::model; }, 3000));
}

TEST_CASE("a word typed into the palette is explained, and leads to its lesson and its page") {
  HEADSCOPE_NEEDS_DISPLAY();
  Class c;
  REQUIRE(c.driver.until([&] { return !c.lessons.glossary().empty(); }));
  const auto& all = c.lessons.glossary();
  const auto found = std::ranges::find_if(
      all, [&](const GlossaryEntry& e) { return !e.lesson.empty() && e.page.starts_with("mechanisms/"); });
  REQUIRE(found != all.end());
  c.app.requests().glossary = found->term;
  c.driver.frames(4);
  CHECK(c.driver.shown("Show it"));
  c.driver.click("Show it");
  c.driver.frames(4);
  CHECK(c.app.requests().workspace == 1);  // Mechanisms is the second tab of this window
  CHECK("mechanisms/" + c.app.settings().pages["Mechanisms"] == found->page);
  c.driver.key(ImGuiKey_F1, ImGuiMod_Shift);
  c.driver.frames(4);
  REQUIRE(c.driver.shown("##glossary filter"));
  c.driver.click("##glossary filter");
  c.driver.type(found->term);
  c.driver.frames(3);
  c.driver.click(found->term);
  c.driver.frames(3);
  c.driver.click("Lesson");
  REQUIRE(c.driver.until([&] { return c.lessons.lesson() != nullptr; }));
  CHECK(c.lessons.lesson()->id == found->lesson);
}

TEST_CASE("words in another language are found by its names and by the English ones") {
  HEADSCOPE_NEEDS_DISPLAY();
  Class c;
  c.lessons.set_language("de");
  const auto residual_stream = [&] {
    return std::ranges::find(c.lessons.glossary(), "Residualstrom", &GlossaryEntry::title);
  };
  REQUIRE(c.driver.until([&] { return residual_stream() != c.lessons.glossary().end(); }));
  const AppContext context{c.app.explorer(), c.app.settings(), c.app.requests()};
  const auto items = palette_items(context);
  for (const std::string query : {"residual stream", "Residualstrom", "skip connection", "Residualverbindung"}) {
    CAPTURE(query);
    const auto hits = search_palette(items, query, 3);
    CHECK(std::ranges::any_of(hits, [&](const PaletteHit& hit) {
      return items[hit.item].id.starts_with("glossary/residual") && items[hit.item].shown.starts_with("Residual");
    }));
    c.driver.key(ImGuiKey_F1, ImGuiMod_Shift);
    c.driver.frames(4);
    c.driver.click("##glossary filter");
    c.driver.type(query);
    c.driver.frames(3);
    const bool connection = query.find("onne") != query.npos || query.find("verb") != query.npos;
    c.driver.click(connection ? "Residualverbindung" : "Residualstrom");
    c.driver.frames(3);
    CHECK(c.driver.shown("All words"));
    c.driver.key(ImGuiKey_Escape);
    c.driver.frames(3);
  }
}

TEST_CASE("every lesson and page that the glossary names is there") {
  HEADSCOPE_NEEDS_DISPLAY();
  App app(testing::Explore::options(1280, 720));
  AllWorkspaces workspaces(app);
  std::set<std::string> pages, lessons;
  for (const UiRequests::Page& each : app.requests().pages) pages.insert(workspace_option(each.of) + "/" + each.id);
  for (const auto& file : bundled()) lessons.insert(file.stem().string());
  std::string why_not;
  const auto all = read_glossary("en", why_not);
  CHECK(all.size() >= 100);
  for (const GlossaryEntry& entry : all) {
    CAPTURE(entry.term);
    CHECK((entry.page.empty() || pages.contains(entry.page)));
    CHECK((entry.lesson.empty() || lessons.contains(entry.lesson)));
    CHECK(entry.text.size() < 500);
  }
}

TEST_CASE("lessons of other scripts stay inside their column, and every key of slides moves one thing") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = testing::Explore::options(1280, 720);
  App app(options);
  AllWorkspaces workspaces(app);
  testing::Driver driver(app.window(), [&] { app.frame(); });
  LessonController& lessons = app.explorer().lessons;
  std::string chinese;
  for (int i = 0; i < 60; ++i) chinese += i % 9 == 0 ? "*注意力*" : "一个词看向别的词";
  const std::string text =
      "---\ntitle: t\nmodel: induction\ntext: Mr and Mrs Qu\n---\n## 注意力\n" + chinese +
      "\n\nالانتباه *ينظر* إلى الكلمات السابقة كلها\n## b\nc\n```show\nworkspace: Generate\n```\n## d\ne\n";
  lessons.open(std::make_shared<const Lesson>(parse_lesson(text, "x", "x.md")));
  REQUIRE(driver.until([&] { return lessons.told() != nullptr && app.settled(); }, 3000));
  driver.frames(3);
  // Many lines of Chinese push the buttons down; one line that runs out of the column would not.
  CHECK(driver.item("Next").min.y > 300);
  app.requests().presenting = true;
  lessons.go(1);
  REQUIRE(driver.until([&] { return lessons.told() != nullptr && workspaces.generation.ready(); }, 3000));
  driver.key(ImGuiKey_RightArrow);
  driver.frames(3);
  CHECK(lessons.at() == 2);
  lessons.go(1);
  REQUIRE(driver.until([&] { return lessons.told() != nullptr && app.settled(); }, 3000));
  CHECK(workspaces.generation.branch().steps.empty());  // no token was written by that
  driver.key(ImGuiKey_Escape);
  driver.frames(3);
  CHECK_FALSE(app.requests().presenting);
  CHECK(lessons.lesson());
}

TEST_CASE("a lesson is in the chosen language where fonts have its characters; Settings choose another") {
  HEADSCOPE_NEEDS_DISPLAY();
  const bool chinese = Glyphs().lacking("她", {}).empty();
  AppOptions options = testing::Explore::options(1280, 720);
  options.language = "zh";
  {
    testing::Explore e(options);
    LessonController& lessons = e.app.explorer().lessons;
    lessons.open("01-who-is-she");
    REQUIRE(e.driver.until([&] { return lessons.lesson() && lessons.told(); }, 6000));
    CHECK(lessons.lesson()->title == (chinese ? "“she”看的是哪个词？" : "Which word does “she” look at?"));
    CHECK(e.app.explorer().jobs.message().has_value() == !chinese);
    if (!chinese) CHECK(e.app.explorer().jobs.message()->text.starts_with("Lessons are in English: no font"));
  }
  options.language = "de";  // of the command line: what the run begins with
  {
    testing::Explore e(options);
    LessonController& lessons = e.app.explorer().lessons;
    lessons.open("01-who-is-she");
    REQUIRE(e.driver.until([&] { return lessons.lesson() && lessons.told(); }, 6000));
    CHECK(lessons.lesson()->language == "de");
    CHECK(e.app.settings().language.empty());
    e.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
    e.driver.click("language of lessons");
    e.driver.click("lessons in en");
    REQUIRE(e.driver.until([&] { return lessons.lesson()->language.empty() && lessons.told(); }, 6000));
  }
  options.language = "";
  testing::Explore e(options);
  LessonController& lessons = e.app.explorer().lessons;
  lessons.open("01-who-is-she");
  REQUIRE(e.driver.until([&] { return lessons.lesson() && lessons.told(); }, 6000));
  CHECK(lessons.step().title == "A model that has to look back");
  e.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
  e.driver.click("language of lessons");
  e.driver.click("lessons in de");
  REQUIRE(e.driver.until([&] { return lessons.lesson()->language == "de" && lessons.told(); }, 6000));
  CHECK(lessons.step().title == "Ein Modell, das zurückschauen muss");
  CHECK(e.app.settings().language == "de");
  e.driver.click("language of lessons");
  e.driver.click("lessons in en");
  REQUIRE(e.driver.until([&] { return lessons.lesson()->language.empty() && lessons.told(); }, 6000));
}

TEST_CASE("every workspace and page that a bundled lesson shows is there") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = testing::Explore::options(1280, 720);
  App app(options);
  AllWorkspaces workspaces(app);
  int pages = 0;
  for (const auto& file : bundled())
    for (const Lesson lesson = read_lesson(file); const LessonStep& step : lesson.steps) {
      const Session session = lesson_session(step.scene, {}, file.string());
      for (const auto& [workspace, page] : session.window.pages) {
        CAPTURE(lesson.id);
        CAPTURE(step.title);
        CAPTURE(page);
        CHECK(std::ranges::any_of(app.requests().pages, [&](const UiRequests::Page& each) {
          return each.of == workspace && each.id == page;
        }));
        ++pages;
      }
    }
  CHECK(pages > 0);
}

}  // namespace headscope::lessons_test
