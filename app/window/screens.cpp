#include "app/window/screens.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

namespace headscope {

bool on_some_screen(std::pair<int, int> corner, int width) {
  int count = 0;
  GLFWmonitor** monitors = glfwGetMonitors(&count);
  for (int i = 0; i < count; ++i) {
    int x = 0, y = 0, across = 0, down = 0;
    glfwGetMonitorWorkarea(monitors[i], &x, &y, &across, &down);
    const int middle = corner.first + width / 2;
    if (middle > x && middle < x + across && corner.second >= y && corner.second < y + down - 40) return true;
  }
  return false;
}

GLFWmonitor* screen_of(GLFWwindow* window) {
  if (GLFWmonitor* whole = glfwGetWindowMonitor(window)) return whole;
  int x = 0, y = 0, width = 0, height = 0, count = 0;
  glfwGetWindowPos(window, &x, &y);
  glfwGetWindowSize(window, &width, &height);
  GLFWmonitor** const all = glfwGetMonitors(&count);
  for (int i = 0; i < count; ++i) {
    int left = 0, top = 0;
    glfwGetMonitorPos(all[i], &left, &top);
    const GLFWvidmode* const mode = glfwGetVideoMode(all[i]);
    const int middle_x = x + width / 2 - left, middle_y = y + height / 2 - top;
    if (mode && middle_x >= 0 && middle_x < mode->width && middle_y >= 0 && middle_y < mode->height) return all[i];
  }
  return count > 0 ? all[count - 1] : nullptr;
}

void move_to_other_screen(GLFWwindow* window, GLFWwindow* other) {
  int count = 0;
  GLFWmonitor** const all = glfwGetMonitors(&count);
  GLFWmonitor* const taken = screen_of(other);
  for (int i = 0; i < count; ++i) {
    if (all[i] == taken) continue;
    int x = 0, y = 0, across = 0, down = 0;
    glfwGetMonitorWorkarea(all[i], &x, &y, &across, &down);
    glfwSetWindowPos(window, x, y);
    if (across > 0 && down > 0) glfwSetWindowSize(window, across, down);
    return;
  }
}

Inside::Inside(GLFWwindow* window, ImGuiContext* context)
    : window_before_(glfwGetCurrentContext()),
      context_before_(ImGui::GetCurrentContext()),
      changed_(context_before_ && context != context_before_) {
  if (window != window_before_) glfwMakeContextCurrent(window);
  if (context != context_before_) ImGui::SetCurrentContext(context);
}

Inside::~Inside() {
  if (!changed_) return;
  glfwMakeContextCurrent(window_before_);
  ImGui::SetCurrentContext(context_before_);
}

}  // namespace headscope
