#include "app/window/window.h"

#include <fmt/format.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <imgui_internal.h>

#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "app/window/screens.h"
#include "app/window/window_state.h"
#include "core/base/error.h"
#include "core/base/thread_time.h"
#include "viz/gl/gl.h"

namespace headscope {

namespace {

/// After these a tooltip's delay has passed; one more frame shows it.
constexpr double late_frame_seconds = 0.25;

}  // namespace

Window::Window(const WindowOptions& options) : state_(std::make_unique<State>(options, nullptr)) {
  state_->theme = &headscope::theme(options.theme);
  state_->open();
}

Window::Window(const WindowOptions& options, Window& first)
    : state_(std::make_unique<State>(options, first.state_.get())) {
  state_->theme = &headscope::theme(options.theme);
  try {
    state_->open();
  } catch (...) {
    state_.reset();
    first.state_->take_hold();
    throw;
  }
  first.state_->take_hold();
}

Window::~Window() {
  if (!state_ || !state_->first) return;
  State* const first = state_->first;
  state_.reset();  // makes itself the current one
  first->take_hold();
}

void Window::within(const std::function<void()>& act) {
  const Inside inside = state_->inside();
  act();
}

bool Window::closing() const {
  return state_->options.unseen ? state_->closed : glfwWindowShouldClose(state_->window.get());
}

void Window::close() {
  if (state_->options.unseen)
    state_->closed = true;
  else
    glfwSetWindowShouldClose(state_->window.get(), GLFW_TRUE);
  wake();
}

void Window::stay_open() {
  if (state_->options.unseen)
    state_->closed = false;
  else
    glfwSetWindowShouldClose(state_->window.get(), GLFW_FALSE);
}

void Window::wait() {
  State& s = *state_;
  glfwPollEvents();
  if (s.woken.exchange(false)) s.happened();
  // Dear ImGui hands out a quick typist's keys over several frames; nothing else need happen for the next one.
  if (!ImGui::GetCurrentContext()->InputEventsQueue.empty()) s.happened();
  while (s.frames_owed == 0 && !closing()) {
    double timeout = s.tick_seconds;
    if (s.late_frame_owed) timeout = timeout > 0 ? std::min(timeout, late_frame_seconds) : late_frame_seconds;
    if (timeout > 0) {
      glfwWaitEventsTimeout(timeout);
      if (s.frames_owed == 0 && !s.woken.load()) {
        s.late_frame_owed = s.late_frame_owed && timeout < late_frame_seconds;
        s.frames_owed = 1;
      }
    } else {
      glfwWaitEvents();
    }
    if (s.woken.exchange(false)) s.happened();
  }
  s.tick_seconds = 0;
}

void Window::tick(double seconds) {
  state_->tick_seconds = seconds;
}

void Window::wake() {
  state_->woken = true;
  if (state_->glfw) glfwPostEmptyEvent();
}

namespace {
/// What of the queue has to wait for the next frame. A hand that is quicker than a frame presses Ctrl and S and lets go
/// of Ctrl first: Dear ImGui would take all three at once, and tell of an S without Ctrl.
std::vector<ImGuiInputEvent> events_to_hold_back() {
  ImVector<ImGuiInputEvent>& queue = ImGui::GetCurrentContext()->InputEventsQueue;
  bool pressed = false;
  for (int i = 0; i < queue.Size; ++i) {
    if (queue[i].Type != ImGuiInputEventType_Key) continue;
    const bool modifier = (queue[i].Key.Key & ImGuiMod_Mask_) != 0, down = queue[i].Key.Down;
    if (pressed && modifier && !down) {
      std::vector<ImGuiInputEvent> later(queue.begin() + i, queue.end());
      queue.resize(i);
      return later;
    }
    pressed = pressed || (down && !modifier);
  }
  return {};
}
}  // namespace

void Window::frame(const Draw& draw) {
  State& s = *state_;
  const Inside inside = s.inside();
  const double begin = thread_seconds();
  ++s.frames;
  s.undrawn = false;  // a frame that fails leaves nothing to draw
  s.frames_owed = std::max(0, s.frames_owed - 1);
  s.fonts->begin_frame();
  const double scale = s.scale();
  if (s.styled_theme != s.theme || s.styled_scale != scale) {
    s.fonts->set_scale(scale);
    apply_style(*s.theme, *s.fonts, static_cast<float>(scale));
    s.styled_theme = s.theme;
    s.styled_scale = scale;
  }
  if (s.items) s.items->begin_frame();
  s.pictures.all.clear();
  s.pictures.passing.clear();
  s.pictures.started = false;
  s.framed.areas.clear();
  ImGuiIO& io = ImGui::GetIO();
  if (!s.options.unseen) ImGui_ImplOpenGL3_NewFrame();
  if (!s.options.offscreen) {
    ImGui_ImplGlfw_NewFrame();
  } else {
    // The display has no say in its size and its pointer: asked, it would be waited for in every frame.
    if (!s.options.unseen) {
      const double now = glfwGetTime();
      if (s.last_frame > 0) io.DeltaTime = static_cast<float>(std::max(now - s.last_frame, 1e-5));
      s.last_frame = now;
    }
    io.DisplaySize = {static_cast<float>(s.image_width), static_cast<float>(s.image_height)};
    io.DisplayFramebufferScale = {1, 1};
  }
  const std::vector<ImGuiInputEvent> later = events_to_hold_back();
  ImGui::NewFrame();
  for (const ImGuiInputEvent& event : later) ImGui::GetCurrentContext()->InputEventsQueue.push_back(event);
  bool animate = false;
  Ui ui{*s.theme,
        chrome_of(*s.theme),
        *s.fonts,
        s.painter ? &*s.painter : nullptr,
        static_cast<float>(scale),
        s.items ? &*s.items : nullptr,
        &animate,
        s.pictures,
        s.framed};
  try {
    draw(ui);
  } catch (...) {
    ImGui::EndFrame();
    throw;
  }
  // The control that the keyboard was at went with its page: Tab begins anew.
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  if (g.NavCursorVisible && g.NavId != 0 && !g.NavIdIsAlive && g.OpenPopupStack.Size == 0)
    ImGui::SetNavCursorVisible(false);
  ImGui::Render();
  if (animate || ImGui::IsAnyMouseDown()) s.frames_owed = std::max(s.frames_owed, 1);
  // The loop is the first one's.
  if (s.first && (s.frames_owed > 0 || !g.InputEventsQueue.empty()))
    s.first->frames_owed = std::max(s.first->frames_owed, 1);

  const double built = thread_seconds();
  s.undrawn = !s.options.unseen;
  if (!s.options.offscreen || s.draws_unseen)
    s.draw();
  else
    s.update_textures();
  s.cost = {built - begin, thread_seconds() - built};
  if (!s.options.offscreen) glfwSwapBuffers(s.window.get());
}

void Window::set_theme(const std::string& id) {
  state_->theme = &headscope::theme(id);
  state_->happened();
}

const Theme& Window::theme() const {
  return *state_->theme;
}

void Window::set_zoom(double zoom) {
  if (!(zoom > 0)) return;
  state_->zoom = std::clamp(zoom, 0.5, 4.0);
  state_->happened();
}

double Window::zoom() const {
  return state_->zoom;
}

void Window::set_title(const std::string& title) {
  if (title == state_->options.title) return;
  state_->options.title = title;
  glfwSetWindowTitle(state_->window.get(), title.c_str());
}

void Window::resize(int width, int height) {
  State& s = *state_;
  const Inside inside = s.inside();
  if (s.options.offscreen) {
    s.options.width = width, s.options.height = height;
    s.open_image();
  } else {
    glfwSetWindowSize(s.window.get(), static_cast<int>(std::lround(width * s.display_scale())),
                      static_cast<int>(std::lround(height * s.display_scale())));
  }
  s.happened();
}

int Window::width() const {
  if (state_->options.offscreen) return state_->options.width;
  int width = 0;
  glfwGetWindowSize(state_->window.get(), &width, nullptr);
  return static_cast<int>(std::lround(width / state_->display_scale()));
}

int Window::height() const {
  if (state_->options.offscreen) return state_->options.height;
  int height = 0;
  glfwGetWindowSize(state_->window.get(), nullptr, &height);
  return static_cast<int>(std::lround(height / state_->display_scale()));
}

void Window::set_fullscreen(bool on) {
  GLFWwindow* const window = state_->window.get();
  if (state_->options.offscreen || on == (glfwGetWindowMonitor(window) != nullptr)) return;
  auto& [x, y, width, height] = state_->before_fullscreen;
  if (!on) {
    glfwSetWindowMonitor(window, nullptr, x, y, width, height, GLFW_DONT_CARE);
    if (state_->maximized_before) glfwMaximizeWindow(window);
    return;
  }
  state_->maximized_before = maximized();
  glfwGetWindowPos(window, &x, &y);
  glfwGetWindowSize(window, &width, &height);
  if (GLFWmonitor* const screen = screen_of(window))
    if (const GLFWvidmode* const mode = glfwGetVideoMode(screen))
      glfwSetWindowMonitor(window, screen, 0, 0, mode->width, mode->height, GLFW_DONT_CARE);
}

bool Window::maximized() const {
  return !state_->options.offscreen && glfwGetWindowAttrib(state_->window.get(), GLFW_MAXIMIZED) == GLFW_TRUE;
}

std::optional<std::pair<int, int>> Window::position() const {
  if (state_->options.offscreen) return std::nullopt;
  std::pair<int, int> corner{0, 0};
  glfwGetWindowPos(state_->window.get(), &corner.first, &corner.second);
  if (glfwGetError(nullptr) != GLFW_NO_ERROR) return std::nullopt;  // Wayland keeps it to itself
  return corner;
}

bool Window::offscreen() const {
  return state_->options.offscreen;
}

bool Window::names_items() const {
  return state_->items.has_value();
}

std::vector<std::filesystem::path> Window::take_dropped() {
  return std::exchange(state_->dropped, {});
}

Image Window::capture() {
  State& s = *state_;
  const Inside inside = s.inside();
  s.draw();
  Image out;
  out.width = s.image_width, out.height = s.image_height;
  if (!s.options.offscreen) glfwGetFramebufferSize(s.window.get(), &out.width, &out.height);
  const auto row = static_cast<std::size_t>(out.width) * 4, rows = static_cast<std::size_t>(out.height);
  out.rgba.resize(row * rows);
  glBindFramebuffer(GL_FRAMEBUFFER, s.framebuffer.get());
  if (!s.options.offscreen) glReadBuffer(GL_FRONT);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, out.width, out.height, GL_RGBA, GL_UNSIGNED_BYTE, out.rgba.data());
  for (std::size_t y = 0; y < rows / 2; ++y)
    std::swap_ranges(out.rgba.begin() + static_cast<std::ptrdiff_t>(y * row),
                     out.rgba.begin() + static_cast<std::ptrdiff_t>((y + 1) * row),
                     out.rgba.begin() + static_cast<std::ptrdiff_t>((rows - 1 - y) * row));
  for (std::size_t i = 3; i < out.rgba.size(); i += 4) out.rgba[i] = 255;  // a window has nothing behind it
  return out;
}

void Window::draw_unseen() {
  state_->draws_unseen = true;
}

Window::Cost Window::last_cost() const {
  return state_->cost;
}

std::int64_t Window::frames() const {
  return state_->frames;
}

const ShownPictures& Window::pictures() const {
  return state_->pictures;
}

ItemRegistry& Window::items() {
  if (!state_->items) throw Error("window", "WindowOptions::name_items", "a window without a registry of items");
  return *state_->items;
}

Fonts& Window::fonts() {
  return *state_->fonts;
}

}  // namespace headscope
