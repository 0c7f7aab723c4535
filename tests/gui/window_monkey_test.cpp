// Random events in random order: the window has to live through them and stay whole. HEADSCOPE_MONKEY_EVENTS sets how
// many (the sanitizer builds of ./test --all take 20,000), HEADSCOPE_MONKEY_SEED where to begin.

#include <algorithm>
#include <cstdlib>
#include <string>

#include "app/all_workspaces.h"
#include "app/state/explorer.h"
#include "core/base/random.h"
#include "core/base/utf8.h"
#include "tests/gui/explore.h"
#include "tests/support/model_folder.h"
#include "tests/support/paths.h"
#include "tests/support/variable.h"

namespace headscope::window_monkey_test {

using testing::Explore;

namespace {

int from_environment(const char* name, int usual) {
  const char* value = std::getenv(name);
  return value && *value ? std::atoi(value) : usual;
}

/// The whole program, as main.cpp puts it together.
struct Program {
  App app{Explore::options(900, 640)};
  AllWorkspaces workspaces{app};
  headscope::testing::Driver driver{app.window(), [this] { app.frame(); }};
  const AppState& state() { return app.explorer().state(); }
  const Results& results() { return app.explorer().results(); }
};

class Monkey {
 public:
  Monkey(Program& e, std::uint64_t seed, std::vector<std::filesystem::path> models)
      : e_(e), random_(seed), models_(std::move(models)) {}

  void act() {
    ImGuiIO& io = ImGui::GetIO();
    const ImVec2 size = io.DisplaySize;
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return io.AddMousePosEvent(static_cast<float>(below(static_cast<int>(size.x) + 40) - 20),
                                   static_cast<float>(below(static_cast<int>(size.y) + 40) - 20));
      case 4:
      case 5:
      case 6:
        return to_something();
      case 7:
      case 8:
      case 9:
      case 10:
        if (!held_[0] && over_something_that_writes()) return;
        held_[0] = !held_[0];  // press now, let go later: clicks and drags of any length
        return io.AddMouseButtonEvent(0, held_[0]);
      case 11:
        held_[1] = !held_[1];
        return io.AddMouseButtonEvent(1, held_[1]);
      case 12:
        return io.AddMouseWheelEvent(static_cast<float>(below(5) - 2), static_cast<float>(below(9) - 4));
      case 13:
      case 14:
      case 15:
        return key();
      case 16:
      case 17: {
        static constexpr const char* words[] = {"a",  "Mr and Mrs",    "\n",     "é世界", "🙂", " ",
                                                "\t", "<|endoftext|>", "؟مرحبا", "0.5"};
        return io.AddInputCharactersUTF8(words[below(10)]);
      }
      case 18:
        return rarely();
      default:
        return io.AddFocusEvent(below(4) != 0);
    }
  }

 private:
  /// Nothing may be written: not where the machine's owner did not ask for it.
  static bool writes(const Item& item) { return item.label.starts_with("Save") || item.label == "Export"; }
  bool over_something_that_writes() {
    const ImVec2 at = ImGui::GetIO().MousePos;
    return std::ranges::any_of(e_.app.window().items().items(), [&](const Item& item) {
      return writes(item) && at.x >= item.min.x && at.x < item.max.x && at.y >= item.min.y && at.y < item.max.y;
    });
  }

  int below(int n) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(n))); }

  /// The pointer goes to something that has a name; chance alone seldom finds a small button.
  void to_something() {
    const auto& items = e_.app.window().items().items();
    if (items.empty()) return;
    const Item& item = items[static_cast<std::size_t>(below(static_cast<int>(items.size())))];
    if (writes(item)) return;
    ImGui::GetIO().AddMousePosEvent(item.center().x, item.center().y);
  }

  void key() {
    ImGuiIO& io = ImGui::GetIO();
    const auto key = static_cast<ImGuiKey>(ImGuiKey_NamedKey_BEGIN + below(ImGuiKey_F12 - ImGuiKey_NamedKey_BEGIN + 1));
    if (key == ImGuiKey_Enter || key == ImGuiKey_KeypadEnter)
      e_.driver.frames();  // never together with a click on Save
    const bool ctrl = below(3) == 0, shift = below(4) == 0;
    io.AddKeyEvent(ImGuiMod_Ctrl, ctrl);
    io.AddKeyEvent(ImGuiMod_Shift, shift);
    io.AddKeyEvent(key, true);
    e_.driver.frames();
    io.AddKeyEvent(key, false);
    io.AddKeyEvent(ImGuiMod_Ctrl, false);
    io.AddKeyEvent(ImGuiMod_Shift, false);
  }

  void rarely() {
    Explorer& explorer = e_.app.explorer();
    switch (below(11)) {
      case 8:
      case 9:
        e_.app.requests().workspace = below(static_cast<int>(workspace_list.size()));
        return;
      case 10: {
        const auto& pages = e_.app.requests().pages;
        const auto& page = pages[static_cast<std::size_t>(below(static_cast<int>(pages.size())))];
        e_.app.requests().workspace = page.workspace;
        e_.app.settings().pages[page.of] = page.id;
        return;
      }
      case 0:
        return e_.app.window().resize(320 + below(1800), 240 + below(1000));
      case 1:
        return explorer.run.open_model(models_[static_cast<std::size_t>(below(static_cast<int>(models_.size())))]);
      case 2:
        return explorer.files.open_example();
      case 3:
        return explorer.jobs.stop();
      case 4:
        if (below(3) == 0) explorer.editor.set_source(below(2) ? "the old king saw these mice" : "");
        if (below(3) == 0) explorer.editor.look_at(static_cast<Stack>(below(4)));
        return explorer.editor.set_text(below(2) ? "Mr and Mrs Quill"
                                                 : std::string(static_cast<std::size_t>(below(400)), 'q'));
      case 5:
        e_.app.settings().ui_scale = 0.5 + 0.25 * below(7);
        return;
      case 6:
        explorer.editor.view().theme = below(2) ? "light" : below(2) ? "projector" : "dark";
        return;
      default:
        return explorer.editor.set_edits({});
    }
  }

  Program& e_;
  Random random_;
  std::vector<std::filesystem::path> models_;
  bool held_[2] = {false, false};
};

}  // namespace

TEST_CASE("whatever is clicked, dragged, typed and resized, the window lives and its state stays whole") {
  HEADSCOPE_NEEDS_DISPLAY();
  const testing::Variable data("XDG_DATA_HOME", testing::scratch_dir("window-monkey-data").string());
  const int events = from_environment("HEADSCOPE_MONKEY_EVENTS", 600);
  const int seed = from_environment("HEADSCOPE_MONKEY_SEED", 11);
  CAPTURE(seed);
  Program e;
  e.app.settings().last_folder = e.app.settings().save_folder = headscope::testing::scratch_dir("gui-monkey");
  Monkey monkey(
      e, static_cast<std::uint64_t>(seed),
      {headscope::testing::reference("gpt2-random"), headscope::testing::reference("llama-gqa"),
       headscope::testing::source_dir() / "models/tiny-translate", headscope::testing::source_dir() / "models/tiny-vit",
       headscope::testing::reference("tokenizers"), "/nowhere/at/all"});
  for (int i = 0; i < events; ++i) {
    CAPTURE(i);
    monkey.act();
    e.driver.frames();
    if (i % 40 == 0) e.app.window().capture();  // which draws the frame
    if (e.app.window().closing()) e.app.window().stay_open();
    const Document& document = e.state().document;
    const Results& results = e.results();
    REQUIRE_FALSE(first_invalid_utf8(document.text));
    if (results.model.model && document.model == results.model_folder) {
      REQUIRE(document.selected.layer >= 0);
      REQUIRE(document.selected.layer < results.model.model->config().dims.layers);
      REQUIRE(document.selected.head < results.model.model->config().dims.heads);
    }
    REQUIRE(e.state().view.left_width >= 0);
  }
  // After all that it still works.
  ImGuiIO& io = ImGui::GetIO();
  for (int button = 0; button < 2; ++button) io.AddMouseButtonEvent(button, false);
  io.AddFocusEvent(true);
  e.app.window().resize(1280, 720);
  for (int i = 0; i < 8; ++i) e.driver.key(ImGuiKey_Escape);
  e.app.settings().ui_scale = 1;
  e.app.requests().workspace = workspace_index("Explore");
  e.workspaces.training.stop();
  e.app.explorer().jobs.stop();
  e.app.explorer().editor.view() = View{};
  e.app.explorer().editor.set_edits({});
  e.app.explorer().editor.set_too_long(RunRequest::TooLong::refuse);
  e.app.explorer().files.open_example();
  e.app.explorer().editor.set_text("Mr and Mrs Quill");
  e.app.explorer().run.run_again();  // for whatever was stopped on the way
  int quiet = 0;
  REQUIRE(e.driver.until(
      [&] {
        const bool done = e.app.settled() && e.results().facts && e.results().run &&
                          e.results().facts->trace == e.results().run->trace;
        quiet = done ? quiet + 1 : 0;
        return quiet > 8;
      },
      20000));
  CHECK(e.results().run->trace->text == "Mr and Mrs Quill");
  CHECK(e.driver.shown("Layer 1 Head 3"));
  io.AddMousePosEvent(1200, 400);
  for (int i = 0; i < 40; ++i) e.driver.wheel(5);  // the right column may have been scrolled
  CHECK(e.driver.shown("Temperature"));
}

}  // namespace headscope::window_monkey_test
