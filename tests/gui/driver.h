#pragma once
// Drives a window as a person does: moves the pointer, clicks what has a name, types, presses keys, and lets frames
// pass. Events enter Dear ImGui's queue where GLFW's would, one per frame at most, so every press is seen.

#include <imgui.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/window/window.h"

namespace headscope::testing {

/// nullopt and a visible line when there is no display to draw on.
bool have_display();

class Driver {
 public:
  /// `draw` fills every frame of the window.
  Driver(Window& window, Window::Draw draw)
      : Driver(window, [&window, draw = std::move(draw)] { window.frame(draw); }) {}
  /// `frame` makes a whole turn of the program's loop. A frame that Dear ImGui finds fault with fails the test.
  Driver(Window& window, std::function<void()> frame);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  void frames(int count = 1);
  /// Until `done`, at most `most` frames. False when it never was.
  bool until(const std::function<bool()>& done, int most = 600);

  bool shown(std::string_view name);
  /// A line of the tooltip that is up holds these words.
  bool told(std::string_view words);
  /// The named item; the test fails with the list of names when it is not there.
  Item item(std::string_view name);

  void move_to(ImVec2 at);
  void hover(std::string_view name) { move_to(item(name).center()); }
  void press(int button = 0);
  void release(int button = 0);
  void click_at(ImVec2 at, int button = 0);
  void click(std::string_view name, int button = 0) { click_at(item(name).center(), button); }
  void double_click(std::string_view name);
  void drag(ImVec2 from, ImVec2 to, int steps = 5);
  void wheel(float lines);
  void key(ImGuiKey key, ImGuiKey modifier = ImGuiKey_None);
  void type(std::string_view text);

  Window& window() { return window_; }

 private:
  Window& window_;
  std::function<void()> frame_;
};

}  // namespace headscope::testing

/// Leaves the test case with a visible line where no window can be opened.
#define HEADSCOPE_NEEDS_DISPLAY()                                                 \
  if (!headscope::testing::have_display()) {                                      \
    MESSAGE("skipped: no display; run the tests through xvfb-run (./test does)"); \
    return;                                                                       \
  }
