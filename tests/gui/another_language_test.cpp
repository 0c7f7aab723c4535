// The window by a table of words that is not English: one that puts every text in ⟦…⟧. Everything is said by it, and
// nothing else changes: controls have their names, sessions their keys, and pictures are drawn again with it.

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/all_workspaces.h"
#include "app/state/picture_recipe.h"
#include "app/state/window_words.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/words.h"
#include "tests/gui/explore.h"
#include "tests/gui/programs.h"
#include "tests/support/paths.h"
#include "tests/support/variable.h"

namespace headscope::another_language_test {

using testing::Explore;
using testing::scratch_dir;
using testing::source_dir;
namespace fs = std::filesystem;

namespace {
using Texts = std::set<std::string>;

std::string bracketed(const std::string& text) {
  return "⟦" + text + "⟧";
}

std::map<std::string, std::string> english_words() {
  return nlohmann::json::parse(read_file(source_dir() / "assets/words/en.json"))
      .get<std::map<std::string, std::string>>();
}

/// Assets of the test's own, before all others.
struct OwnAssets {
  fs::path folder;
  testing::Variable found;
  explicit OwnAssets(const std::string& name)
      : folder(scratch_dir("language-" + name)), found("HEADSCOPE_ASSETS", folder.string()) {
    fs::create_directories(folder / "words");
    nlohmann::json table;
    for (const auto& [english, text] : english_words()) table[english] = bracketed(text);
    put("xx", table.dump());
  }
  ~OwnAssets() { use_words({}); }
  void put(const std::string& language, const std::string& content) const {
    write_file_atomically(folder / "words" / (language + ".json"), content);
  }
};

/// All of the window, with a person in front of it.
struct Program {
  App app;
  AllWorkspaces workspaces{app};
  headscope::testing::Driver driver{app.window(), [this] { app.frame(); }};

  explicit Program(const std::string& language, const char* example = "induction") : app(options(language, example)) {
    REQUIRE(settle(60'000));
  }
  static AppOptions options(const std::string& language, const char* example) {
    AppOptions out = Explore::options(1280, 720);
    out.example = example;
    out.language = language;
    return out;
  }
  bool settle(int most) {
    int quiet = 0;
    return driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 8; }, most);
  }
  const std::string& message() { return app.explorer().jobs.message()->text; }
  /// What is written on the screen.
  Texts texts() {
    driver.frames(2);
    Texts out;
    for (std::string each : app.window().items().texts()) {
      std::ranges::replace(each, '\n', ' ');  // where lines are broken
      out.insert(std::move(each));
    }
    return out;
  }
  /// What every page of a workspace shows, the workspace itself first, with the pointer over it.
  std::vector<Texts> tour(int frames = 60) {
    std::vector<Texts> all(workspace_list.size());
    const auto show = [&](int workspace) {
      app.requests().workspace = workspace;
      settle(frames);
      Texts& here = all[static_cast<std::size_t>(workspace)];
      for (const ImVec2 at : {ImVec2{170, 300}, {640, 300}, {1150, 260}}) {
        driver.move_to(at);
        here.merge(texts());
      }
    };
    for (int workspace = 0; workspace < static_cast<int>(workspace_list.size()); ++workspace) show(workspace);
    for (const UiRequests::Page& page : std::vector(app.requests().pages)) {
      CAPTURE(page.of + " " + page.id);
      app.settings().pages[page.of] = page.id;
      show(page.workspace);
    }
    return all;
  }
  nlohmann::json session() { return nlohmann::json::parse(to_json(app.explorer().files.session())); }
};

/// Some choices, made by the English names of controls.
nlohmann::json choices_of(Program& p) {
  p.app.requests().workspace = 0;
  p.driver.click("Arcs");
  p.driver.click("Compare");
  p.driver.click("Generate");
  p.driver.click("Mechanisms");
  p.driver.click("Analyse");
  p.settle(60);
  p.driver.click("Explore");
  p.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
  p.driver.click("Light");
  p.driver.click("Close");
  p.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  p.driver.type("dark theme");
  p.driver.click("Dark theme");
  p.driver.click("Export ▾");
  p.driver.click("Save session…");
  p.driver.click("Cancel");
  p.settle(60);
  return p.session();
}

/// Exports what is on the screen as a picture; the file.
fs::path exported(Program& p, const fs::path& folder, const std::string& name) {
  p.app.settings().save_folder = folder;
  p.app.explorer().jobs.dismiss();
  p.driver.key(ImGuiKey_E, ImGuiMod_Ctrl);
  p.driver.click("SVG");
  p.driver.click("##file name");
  p.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  p.driver.type(name);
  REQUIRE(p.settle(20'000));  // its folder has been read
  p.driver.click("Export");
  REQUIRE(p.driver.until([&] { return p.app.explorer().jobs.message().has_value(); }));
  CAPTURE(p.message());
  REQUIRE(fs::exists(folder / (name + ".svg")));
  return folder / (name + ".svg");
}
}  // namespace

TEST_CASE("every workspace and page is said by the table, and controls keep their English names") {
  HEADSCOPE_NEEDS_DISPLAY();
  const OwnAssets assets("tour");
  const auto english = english_words();
  std::vector<Texts> before;
  nlohmann::json session_before, choices_before;
  Texts explore_before;
  const auto without_numbers = [](const Texts& texts) {  // of times, which are others every time
    Texts out;
    std::ranges::copy_if(texts, std::inserter(out, out.end()),
                         [](const std::string& each) { return each.find_first_of("0123456789") == each.npos; });
    return out;
  };
  {
    Program p("en");
    explore_before = without_numbers(p.texts());
    before = p.tour();
    session_before = p.session();
    choices_before = choices_of(p);
    for (const Texts& each : before) CHECK(std::ranges::none_of(each, [](auto& t) { return t.find("⟦") != t.npos; }));
  }
  Program p("xx");
  CHECK(language_of_words() == "xx");
  CHECK_FALSE(p.app.explorer().jobs.message().has_value());
  const std::vector<Texts> now = p.tour();
  const std::pair<std::string, std::vector<std::string>> ordinary[] = {{"Explore", {"Explore", "Export ▾", "PROMPT"}},
                                                                       {"Generate", {"Generate", "PROMPT"}},
                                                                       {"Compare", {"Compare", "COMPARE"}},
                                                                       {"Positions", {"Positions", "THIS METHOD"}},
                                                                       {"Mechanisms", {"Mechanisms", "INPUT"}},
                                                                       {"Analyse", {"Analyse", "Masks"}},
                                                                       {"Corpus", {"Corpus", "CORPUS"}},
                                                                       {"Train", {"Train", "RECIPE"}}};
  for (const auto& [workspace, texts] : ordinary) {
    CAPTURE(workspace);
    const Texts& here = now[workspace_tab(workspace)];
    for (const std::string& each : texts) CHECK_MESSAGE(here.contains(bracketed(each)), each);
  }
  // What the table has of it and is drawn as it stands in the code was not said. Words alone may be tokens.
  for (std::size_t i = 0; i < now.size(); ++i)
    for (const std::string& each : now[i])
      if (each.find(' ') != each.npos && english.contains(each))
        FAIL_CHECK(workspace_list[i].id << ": “" << each << "” is drawn in English");
  CHECK(p.session() == session_before);
  CHECK(choices_of(p) == choices_before);

  // Back in English, all is as before.
  p.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
  CHECK(p.texts().contains(bracketed("COMPUTING")));
  p.driver.click("language of lessons");
  p.driver.click("lessons in en");
  p.driver.frames(3);
  CHECK(language_of_words() == "");
  CHECK(p.texts().contains("COMPUTING"));
  CHECK(p.app.settings().language == "en");
  p.driver.click("language of lessons");
  CHECK(p.driver.shown("lessons in xx"));  // offered, though no lesson is translated to it
  p.driver.key(ImGuiKey_Escape);           // closes both
  CHECK_FALSE(p.driver.shown("Close"));
  CHECK(p.session() == choices_before);
  const std::vector<Texts> after = p.tour(2000);  // what is composed anew has come
  for (std::size_t i = 0; i < after.size(); ++i)
    for (const std::string& each : after[i])
      if (each.find("⟦") != each.npos) FAIL_CHECK(workspace_list[i].id << ": “" << each << "” was composed before");
  Program anew("en");
  CHECK(without_numbers(anew.texts()) == explore_before);
}

TEST_CASE("the German window has room for every workspace beside a model's name, and for the pages' switch") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p("de", "everyday-gpt2");
  CHECK(language_of_words() == "de");
  CHECK(p.texts().contains("Erkunden"));
  for (const WorkspaceName& each : workspace_list) CHECK_MESSAGE(p.driver.shown(each.id), each.id);
  p.app.settings().pages["Generate"] = "beams";
  p.app.requests().workspace = static_cast<int>(workspace_tab("Generate"));
  p.settle(300);
  const float right = p.driver.item("Teacher forcing").max.x;
  CHECK(right < 960);  // where the column on the right begins
  CHECK(right > 800);
}

TEST_CASE("a table that cannot be read, or whose texts do not fit, is one message, with English in their place") {
  HEADSCOPE_NEEDS_DISPLAY();
  const OwnAssets assets("faults");
  assets.put("yy", "[\"no table\"]");
  assets.put("zz", R"({"Settings": "Einstellungen", "step {} of {}": "Schritt {}", "Close": ""})");
  CHECK(word_languages() == std::set<std::string>{"de", "xx", "yy", "zz"});
  {
    Program p("yy");
    REQUIRE(p.app.explorer().jobs.message());
    CHECK(p.message().find("yy.json: expected a table of words") != std::string::npos);
    CHECK(p.message().ends_with("The window is in English."));
    CHECK(p.texts().contains("Explore"));
  }
  {
    assets.put("vv", "{\"Settings\": \"a \u0378\"}");  // a character that nobody has given a meaning
    Program p("vv");
    REQUIRE(p.app.explorer().jobs.message());
    CHECK(p.message().find("no font on this machine has “\u0378” (U+0378), which vv.json is written with") !=
          std::string::npos);
    CHECK(language_of_words() == "");
  }
  Program p("zz_ZZ");  // for which "zz" will do
  REQUIRE(p.app.explorer().jobs.message());
  CHECK(p.message().find("zz.json: English stands in the place of 1 text that cannot be used:\n“step {} of {}”: "
                         "expected the fields {0} {1}, found {0}") != std::string::npos);
  CHECK(language_of_words() == "zz");
  p.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
  CHECK(p.texts().contains("Einstellungen"));
  CHECK(p.texts().contains("Close"));
  p.driver.click("language of lessons");
  p.driver.click("lessons in xx");
  p.driver.frames(3);
  CHECK(p.texts().contains(bracketed("Settings")));
  CHECK_FALSE(p.app.explorer().jobs.message());  // of the table before
}

TEST_CASE("a picture says by which table it is drawn, and is drawn again with that") {
  HEADSCOPE_NEEDS_DISPLAY();
  const OwnAssets assets("pictures");
  std::vector<fs::path> files;
  {
    Program p("xx", "induction-2l");
    files.push_back(exported(p, assets.folder, "head"));  // the command line draws it by itself …
    p.app.requests().workspace = workspace_index("Positions");
    p.app.settings().pages["Positions"] = "sinusoidal";
    REQUIRE(p.settle(60'000));
    files.push_back(exported(p, assets.folder, "positions"));
    p.app.requests().workspace = workspace_index("Analyse");  // … and the window's program this one
    p.app.settings().pages["Analyse"] = "sinks";
    REQUIRE(p.settle(60'000));
    files.push_back(exported(p, assets.folder, "sinks"));
  }
  for (const fs::path& file : files) {
    CAPTURE(file.string());
    CHECK(read_picture_recipe(file).language == "xx");
    const auto again =
        testing::run_program("headscope-cli", "render --again '" + file.string() + "'", testing::Display::none);
    CHECK_MESSAGE(again.code == 0, again.said);
    CHECK(again.said == "the same as " + file.string() + "\n");
    const fs::path anew = assets.folder / "anew.svg";
    const auto written = testing::run_program(
        "headscope-cli", "render --again '" + file.string() + "' -o '" + anew.string() + "'", testing::Display::none);
    CHECK_MESSAGE(written.code == 0, written.said);
    CHECK(read_file(anew) == read_file(file));
  }
  // The title of a page stands in its picture.
  CHECK(read_file(files.back()).find("⟦") != std::string::npos);
  fs::remove(assets.folder / "words/xx.json");
  for (const fs::path& file : files) {
    const auto refused =
        testing::run_program("headscope-cli", "render --again '" + file.string() + "'", testing::Display::none);
    CHECK(refused.code == 1);
    CHECK_MESSAGE(refused.said.find("words/xx.json") != std::string::npos, refused.said);
  }
  Program p("en", "induction-2l");
  CHECK(read_picture_recipe(exported(p, assets.folder, "english")).language.empty());
  CHECK(read_file(assets.folder / "english.svg").find("\"language\"") == std::string::npos);
}

}  // namespace headscope::another_language_test
