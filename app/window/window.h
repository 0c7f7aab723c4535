#pragma once
// A native window with an OpenGL 3.3 core context and Dear ImGui in it. Draws when something happened and sleeps when
// nothing does; the worker wakes it with wake(). The same class draws without showing anything, into an image of any
// size, for screenshots and tests.
//
//   while (!window.closing()) { window.wait(); explorer.frame(now); window.frame([&](Ui& ui) { … }); }
//
// A second one may stand beside the first, with a Dear ImGui, fonts and pictures of its own: what happens in it wakes
// the first, whose loop draws both. Between calls the first is the current one.
//
// Thread rule: the main thread; wake() from any thread.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/widgets/ui.h"
#include "viz/export/raster.h"

namespace headscope {

struct WindowOptions {
  std::string title = "Headscope";
  int width = 1600, height = 1000;                ///< logical pixels; a window larger than the screen is made to fit
  std::optional<std::pair<int, int>> position{};  ///< of the upper left corner; left out when no screen shows it
  bool maximized = false;
  bool offscreen = false;  ///< nothing on screen: frames go into an image of width × height logical pixels
  double scale = 0;        ///< window pixels in a logical pixel; 0 = what the display asks for (offscreen: 1)
  /// Nobody will ever look: frames are laid out as in a window of so many pixels, and none is drawn. Needs no display
  /// and no OpenGL.
  std::optional<std::pair<int, int>> unseen{};
  std::string theme = "dark";
  bool name_items = false;  ///< keep the registry of items, see Window::items()
};

class Window {
 public:
  using Draw = std::function<void(Ui&)>;

  /// Throws Error with what to install when there is no display or no OpenGL 3.3.
  explicit Window(const WindowOptions& options = {});
  /// Beside `first`, which outlives it: on another screen where there is one.
  Window(const WindowOptions& options, Window& first);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// True once the user asked to close, or close() was called.
  bool closing() const;
  void close();
  /// Takes a wish to close back, after asking "really?".
  void stay_open();

  /// Sleeps until there is something to draw: input, wake(), a frame that asked for another. Takes in the events.
  void wait();
  /// Makes the next wait() return after `seconds` at the latest, with one frame to draw.
  void tick(double seconds);
  /// Makes wait() return. Any thread.
  void wake();
  /// With this window as the current one of Dear ImGui and OpenGL.
  void within(const std::function<void()>& act);
  /// One frame. What `draw` throws passes through, with Dear ImGui left in order.
  void frame(const Draw& draw);

  /// Takes effect with the next frame. Throws Error for an unknown theme.
  void set_theme(const std::string& id);
  const Theme& theme() const;
  /// Of the interface; multiplied by what the display asks for. 0.5 … 4.
  void set_zoom(double zoom);
  double zoom() const;
  void set_title(const std::string& title);
  /// Another size, logical pixels.
  void resize(int width, int height);
  /// Window size in logical pixels, for the settings.
  int width() const;
  int height() const;

  /// On the whole of its screen, or as it was before. Nothing changes offscreen.
  void set_fullscreen(bool on);
  bool maximized() const;
  bool offscreen() const;
  bool names_items() const;  ///< items() may be called
  /// Where the window is, when the desktop tells.
  std::optional<std::pair<int, int>> position() const;

  /// Files and folders dropped on the window since the last call.
  std::vector<std::filesystem::path> take_dropped();
  /// The last frame as it is drawn; offscreen that is done here, since nobody saw it before. What the frame shows must
  /// still be there: call it before anything changes.
  Image capture();
  /// Offscreen, draws every frame from now on, asked for or not, so that last_cost() is that of a window.
  void draw_unseen();
  /// Processor seconds of this thread for the last frame: what it shows made into vertices, and handing those to OpenGL
  /// (which is rendering where the driver is software). Neither holds the wait for the display.
  struct Cost {
    double build = 0, draw = 0;
  };
  Cost last_cost() const;
  /// Frames since the window was opened.
  std::int64_t frames() const;
  /// What the last frame could draw once more, where somebody had asked for it.
  const ShownPictures& pictures() const;
  /// What the last frame showed, by name. REQUIRES name_items.
  ItemRegistry& items();
  Fonts& fonts();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headscope
