#pragma once
// What a window holds of GLFW and Dear ImGui, each let go where it goes out of scope. Thread rule: the main thread.

#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#include <string>

#include "core/base/error.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

namespace headscope {

inline std::string glfw_reason() {
  const char* text = nullptr;
  glfwGetError(&text);
  return text != nullptr ? text : "no reason given";
}

struct Glfw {
  Glfw() {
    if (!glfwInit())
      throw Error("window", "a display to open it on", glfw_reason(),
                  "start it from a desktop session; without one: xvfb-run -a headscope --screenshot picture.png "
                  "(packages xvfb, xauth), or headscope-cli, which needs no display");
  }
  ~Glfw() { glfwTerminate(); }
  Glfw(const Glfw&) = delete;
  Glfw& operator=(const Glfw&) = delete;
};

struct DestroyWindow {
  void operator()(GLFWwindow* window) const { glfwDestroyWindow(window); }
};

struct ImGuiLife {
  ImGuiContext* context = ImGui::CreateContext();
  ~ImGuiLife() { ImGui::DestroyContext(context); }
};

struct Backends {
  explicit Backends(GLFWwindow* window) {
    ImGui_ImplGlfw_InitForOpenGL(window, true);
    ImGui_ImplOpenGL3_Init("#version 330 core");
  }
  ~Backends() {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
  }
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;
};

}  // namespace headscope
