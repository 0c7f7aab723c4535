#include "app/window/window.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "app/window/screens.h"
#include "app/window/window_life.h"
#include "core/base/error.h"
#include "core/base/thread_time.h"
#include "viz/gl/gl.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

namespace headscope {

namespace {

/// Dear ImGui needs a few frames until what an event set off has settled (hover, layout, popups).
constexpr int frames_after_event = 3;
/// After these a tooltip's delay has passed; one more frame shows it.
constexpr double late_frame_seconds = 0.25;

}  // namespace

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
  bool undrawn = false;  ///< the last frame was made, but not drawn yet
  bool closed = false;   ///< of one that is never seen
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
  if (!s.options.unseen) {
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
  }
  ImGuiIO& io = ImGui::GetIO();
  if (s.options.offscreen) {
    io.DisplaySize = {static_cast<float>(s.image_width), static_cast<float>(s.image_height)};
    io.DisplayFramebufferScale = {1, 1};
  }
  ImGui::NewFrame();
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
