#pragma once
// What a window holds. Private to window.cpp and window_state.cpp.

#include <imgui.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "app/window/screens.h"
#include "app/window/window.h"
#include "app/window/window_life.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

namespace headscope {

/// Dear ImGui needs a few frames until what an event set off has settled (hover, layout, popups).
inline constexpr int frames_after_event = 3;

struct Window::State {
  WindowOptions options;
  State* first = nullptr;  ///< beside which this one stands: its loop draws both
  std::shared_ptr<Glfw> glfw;
  std::unique_ptr<GLFWwindow, DestroyWindow> window;
  std::optional<ImGuiLife> imgui;
  std::optional<Backends> backends;
  std::optional<Fonts> fonts;
  std::optional<HeatmapPainter> painter;
  std::optional<ItemRegistry> items;
  ShownPictures pictures;
  Framed framed;
  GlHandle framebuffer, image;  ///< offscreen
  int image_width = 0, image_height = 0;
  std::array<int, 4> before_fullscreen{};  ///< x, y, width, height
  bool maximized_before = false;

  const Theme* theme = nullptr;
  double zoom = 1, styled_scale = 0;
  const Theme* styled_theme = nullptr;
  int frames_owed = frames_after_event;
  bool late_frame_owed = false;
  double tick_seconds = 0;  ///< 0 = no need to wake up by itself
  std::atomic<bool> woken{false};
  std::vector<std::filesystem::path> dropped;
  Cost cost;
  std::int64_t frames = 0;
  double last_frame = 0;  ///< of one offscreen, when it was made; 0 = none was
  bool undrawn = false;   ///< the last frame was made, but not drawn yet
  bool closed = false;    ///< of one that is never seen
  bool draws_unseen = false;

  State(const WindowOptions& wanted, State* beside) : options(wanted), first(beside) {
    options.offscreen = options.offscreen || options.unseen;
    if (!options.unseen) glfw = beside ? beside->glfw : std::make_shared<Glfw>();
  }
  ~State() {
    take_hold();  // GL objects go while the context is there
  }
  /// Makes it the current one.
  void take_hold() {
    if (window) glfwMakeContextCurrent(window.get());
    if (imgui) ImGui::SetCurrentContext(imgui->context);
  }

  void happened() {
    frames_owed = frames_after_event;
    late_frame_owed = true;
    if (first) first->happened();
  }
  Inside inside() { return {window.get(), imgui ? imgui->context : nullptr}; }

  double display_scale() const {
#ifdef __APPLE__
    return 1;  // sizes are logical already; Dear ImGui draws at the density of the frame buffer
#else
    float x = 1, y = 1;
    glfwGetWindowContentScale(window.get(), &x, &y);
    return std::clamp(static_cast<double>(x), 0.5, 8.0);
#endif
  }
  double scale() const {
    const double base = options.scale > 0 ? options.scale : options.offscreen ? 1.0 : display_scale();
    return base * zoom;
  }

  void open();
  void open_window();
  void begin_imgui();
  void listen();
  void open_image();
  void draw();
  void update_textures();
};

}  // namespace headscope
