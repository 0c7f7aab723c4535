// How a window is opened and drawn.

#include "app/window/window_state.h"

#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <imgui_internal.h>

#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "viz/gl/gl.h"

namespace headscope {

void Window::State::open() {
  if (options.unseen) {
    begin_imgui();
    std::tie(image_width, image_height) = *options.unseen;
    ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasTextures;  // glyphs are made when they are needed
    fonts.emplace();
  } else {
    open_window();
    begin_imgui();
    backends.emplace(window.get());
    fonts.emplace();
    painter.emplace();
    if (options.offscreen)
      open_image();
    else
      glfwShowWindow(window.get());
  }
  if (options.name_items) items.emplace();
}

void Window::State::open_window() {
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_DEPTH_BITS, 0);
  glfwWindowHint(GLFW_STENCIL_BITS, 0);
  glfwWindowHint(GLFW_VISIBLE, GLFW_FALSE);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  glfwWindowHint(GLFW_MAXIMIZED, options.maximized && !options.offscreen ? GLFW_TRUE : GLFW_FALSE);
  glfwWindowHint(GLFW_FOCUS_ON_SHOW, GLFW_TRUE);
  glfwWindowHint(GLFW_AUTO_ICONIFY,
                 GLFW_FALSE);  // on the whole of one screen it stays there while another is worked on
  int width = options.offscreen ? 64 : options.width, height = options.offscreen ? 64 : options.height;
  if (GLFWmonitor* monitor = glfwGetPrimaryMonitor(); monitor && !options.offscreen) {
    int x = 0, y = 0, across = 0, down = 0;
    glfwGetMonitorWorkarea(monitor, &x, &y, &across, &down);
    if (across > 0 && down > 0) width = std::min(width, across), height = std::min(height, down);
  }
  window.reset(glfwCreateWindow(width, height, options.title.c_str(), nullptr, nullptr));
  if (!window)
    throw Error("window", "OpenGL 3.3 or newer", glfw_reason(),
                "install a graphics driver; libgl1-mesa-dri draws in software where there is none");
  if (options.position && !options.offscreen && on_some_screen(*options.position, width))
    glfwSetWindowPos(window.get(), options.position->first, options.position->second);
  if (first && !options.offscreen) move_to_other_screen(window.get(), first->window.get());
  glfwMakeContextCurrent(window.get());
  glfwSwapInterval(options.offscreen || first ? 0 : 1);  // one waits for the display
  glfwSetWindowSizeLimits(window.get(), 640, 420, GLFW_DONT_CARE, GLFW_DONT_CARE);
  listen();
}

void Window::State::begin_imgui() {
  imgui.emplace();
  ImGui::SetCurrentContext(imgui->context);
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;                              // sizes belong to the settings
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;  // Tab and arrows reach the controls: app/widgets/keyboard.h
  io.ConfigNavEscapeClearFocusItem = false;              // Tab goes on where it was
  ImGuiContext& context = *ImGui::GetCurrentContext();
  context.ConfigNavWindowingKeyNext = context.ConfigNavWindowingKeyPrev = 0;  // there is one window to be in
  io.ConfigInputTextCursorBlink = false;                                      // a still cursor lets the loop sleep
  io.ConfigErrorRecoveryEnableAssert = false;
  io.ConfigErrorRecoveryEnableTooltip = false;
}

/// Dear ImGui's own callbacks are installed later and call these first.
void Window::State::listen() {
  GLFWwindow* w = window.get();
  glfwSetWindowUserPointer(w, this);
  static constexpr auto of = [](GLFWwindow* who) { return static_cast<State*>(glfwGetWindowUserPointer(who)); };
  glfwSetKeyCallback(w, [](GLFWwindow* who, int, int, int, int) { of(who)->happened(); });
  glfwSetCharCallback(w, [](GLFWwindow* who, unsigned) { of(who)->happened(); });
  glfwSetCursorPosCallback(w, [](GLFWwindow* who, double, double) { of(who)->happened(); });
  glfwSetCursorEnterCallback(w, [](GLFWwindow* who, int) { of(who)->happened(); });
  glfwSetMouseButtonCallback(w, [](GLFWwindow* who, int, int, int) { of(who)->happened(); });
  glfwSetScrollCallback(w, [](GLFWwindow* who, double, double) { of(who)->happened(); });
  glfwSetWindowFocusCallback(w, [](GLFWwindow* who, int) { of(who)->happened(); });
  glfwSetWindowRefreshCallback(w, [](GLFWwindow* who) { of(who)->happened(); });
  glfwSetFramebufferSizeCallback(w, [](GLFWwindow* who, int, int) { of(who)->happened(); });
  glfwSetWindowContentScaleCallback(w, [](GLFWwindow* who, float, float) { of(who)->happened(); });
  glfwSetWindowCloseCallback(w, [](GLFWwindow* who) { of(who)->happened(); });
  glfwSetDropCallback(w, [](GLFWwindow* who, int count, const char** paths) {
    for (int i = 0; i < count; ++i) of(who)->dropped.emplace_back(reinterpret_cast<const char8_t*>(paths[i]));
    of(who)->happened();
  });
}

void Window::State::open_image() {
  image_width = std::max(1, static_cast<int>(std::lround(options.width * scale() / zoom)));
  image_height = std::max(1, static_cast<int>(std::lround(options.height * scale() / zoom)));
  GLint longest = 0;
  glGetIntegerv(GL_MAX_TEXTURE_SIZE, &longest);
  if (image_width > longest || image_height > longest)
    throw Error("picture size", fmt::format("at most {} px on a side", longest),
                fmt::format("{} × {}", image_width, image_height), "a smaller size or scale");
  unsigned name = 0;
  glGenTextures(1, &name);
  image = {name, [](unsigned t) { glDeleteTextures(1, &t); }};
  glBindTexture(GL_TEXTURE_2D, name);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, image_width, image_height, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glGenFramebuffers(1, &name);
  framebuffer = {name, [](unsigned f) { glDeleteFramebuffers(1, &f); }};
  glBindFramebuffer(GL_FRAMEBUFFER, name);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, image.get(), 0);
}

/// What the last frame consists of, into the window or the image, once.
void Window::State::draw() {
  if (!std::exchange(undrawn, false)) return;
  int width = image_width, height = image_height;
  if (!options.offscreen) glfwGetFramebufferSize(window.get(), &width, &height);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer.get());
  glViewport(0, 0, width, height);
  const ImVec4 ground = vec(theme->background);
  glDisable(GL_SCISSOR_TEST);
  glClearColor(ground.x, ground.y, ground.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
}

/// The glyphs that came with this frame: Dear ImGui hands them over once.
void Window::State::update_textures() {
  for (ImTextureData* texture : *ImGui::GetDrawData()->Textures) {
    if (texture->Status == ImTextureStatus_OK) continue;
    if (!options.unseen) {
      ImGui_ImplOpenGL3_UpdateTexture(texture);
    } else if (texture->Status == ImTextureStatus_WantDestroy) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    } else {
      texture->SetTexID(1);  // any: nothing is drawn with it
      texture->SetStatus(ImTextureStatus_OK);
    }
  }
}

}  // namespace headscope
