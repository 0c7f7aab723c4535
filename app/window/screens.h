#pragma once
// Which screen a window of GLFW is on, and which of two windows is the current one. Thread rule: the main thread.

#include <imgui.h>

#include <utility>

struct GLFWmonitor;
struct GLFWwindow;

namespace headscope {

/// True when the middle of a title bar at `corner` can be taken hold of.
bool on_some_screen(std::pair<int, int> corner, int width);
/// The screen that shows the window's middle, else the last one; nullptr where there is none.
GLFWmonitor* screen_of(GLFWwindow* window);
/// Onto the whole of a screen that `other` is not on; where there is but one, the desktop puts it somewhere.
void move_to_other_screen(GLFWwindow* window, GLFWwindow* other);

/// For as long as it lives, this window is the current one of OpenGL and of Dear ImGui; then again what was.
class Inside {
 public:
  Inside(GLFWwindow* window, ImGuiContext* context);
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  GLFWwindow* window_before_;
  ImGuiContext* context_before_;
  bool changed_;
};

}  // namespace headscope
