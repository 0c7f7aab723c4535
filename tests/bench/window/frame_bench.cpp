// How long the window's thread works for one frame, with 144 thumbnails and a map of 1,024 tokens on screen; how long
// the first picture takes; how often an idle window draws.
//
// Two parts of a frame are told apart. "build" is the program's own work: results taken over, panels, text, vertices.
// "draw" hands the vertices to OpenGL; with a software driver (llvmpipe) that is rendering, which a graphics card does
// by itself. Neither holds the wait for the display. Times are the thread's own processor time, so that other work on
// the machine does not count; for "draw" that leaves out what a software driver does on threads of its own.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "app/all_workspaces.h"
#include "app/window/app.h"
#include "core/base/thread_time.h"
#include "tests/gui/driver.h"
#include "tests/support/model_folder.h"
#include "tests/support/paths.h"

namespace {

using namespace headscope;
using Clock = std::chrono::steady_clock;

struct Controller {
  App app;
  ExploreWorkspace workspace;
  headscope::testing::Driver driver;

  explicit Controller(const AppOptions& options) : app(options), driver(app.window(), [this] { app.frame(); }) {
    app.add(workspace);
    app.window().draw_unseen();
  }
  void settle() {
    int quiet = 0;
    driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 8; }, 60000);
  }
};

AppOptions offscreen(int width, int height) {
  AppOptions options;
  options.width = width, options.height = height;
  options.offscreen = true;
  return options;
}

/// Frames while `act` does something before each; prints median, 95th percentile and maximum.
void measure(Controller& controller, const std::string& what, int frames, const std::function<void(int)>& act) {
  std::vector<double> build, draw;
  for (int i = 0; i < frames; ++i) {
    act(i);
    const double begin = thread_seconds();
    controller.app.frame();
    const double whole = thread_seconds() - begin, drawn = controller.app.window().last_cost().draw;
    build.push_back(1e3 * (whole - drawn));
    draw.push_back(1e3 * drawn);
  }
  const auto at = [](std::vector<double>& v, double share) {
    std::ranges::sort(v);
    return v[std::min(v.size() - 1, static_cast<std::size_t>(share * static_cast<double>(v.size())))];
  };
  fmt::print("{:<44} build {:6.2f} {:6.2f} {:6.2f}   draw {:6.2f} {:6.2f} {:6.2f}\n", what, at(build, 0.5),
             at(build, 0.95), at(build, 1), at(draw, 0.5), at(draw, 0.95), at(draw, 1));
}

ImVec2 inside(const Item& item, int i) {
  const float t = static_cast<float>(i % 97) / 97, u = static_cast<float>(i % 61) / 61;
  return {item.min.x + t * (item.max.x - item.min.x), item.min.y + u * (item.max.y - item.min.y)};
}

}  // namespace

int main(int argc, char** argv) {
  const int frames = argc > 1 ? std::atoi(argv[1]) : 300;
  try {
    {
      const auto begin = Clock::now();
      Controller controller(offscreen(1600, 1000));
      const auto shown = [&] { return controller.app.settled() && controller.app.explorer().results().facts; };
      while (!shown()) controller.app.frame();
      controller.app.frame();
      fmt::print("first picture, all panels of the bundled example: {:.0f} ms\n",
                 std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    const auto folder = headscope::testing::scratch_dir("frame-bench");
    headscope::testing::write_random_gpt2(folder, 12, 12, 96, 1024);
    std::string text;
    while (text.size() < 1024) text += "When Mary and John went to the store, John gave a drink to ";
    text.resize(1024);
    AppOptions options = offscreen(1600, 1000);
    options.model = folder;
    options.text = text;
    options.name_items = true;  // to find things; it costs some time of every frame, which is left in
    Controller controller(options);
    controller.settle();
    fmt::print("12 × 12 heads, {} tokens; milliseconds: median, 95 %, most\n",
               controller.app.explorer().results().run->trace->tokens.size());
    const Item map = controller.driver.item("head/map"), atlas = controller.driver.item("atlas"),
               slider = controller.driver.item("Temperature");
    ImGuiIO& io = ImGui::GetIO();
    measure(controller, "nothing moves", frames, [](int) {});
    const auto walk = [&](const Item& item) {
      return [&io, item](int i) {
        const ImVec2 at = inside(item, i);
        io.AddMousePosEvent(at.x, at.y);
      };
    };
    measure(controller, "pointer over the map", frames, walk(map));
    measure(controller, "pointer over the atlas", frames, walk(atlas));
    measure(controller, "wheel: zooming the map", frames, [&](int i) {
      const ImVec2 at = inside(map, 40);
      io.AddMousePosEvent(at.x, at.y);
      io.AddMouseWheelEvent(0, i % 20 < 10 ? 1.f : -1.f);
    });
    controller.driver.move_to(slider.center());
    controller.driver.press();
    measure(controller, "temperature dragged", frames,
            [&](int i) { io.AddMousePosEvent(slider.center().x + static_cast<float>(i % 50), slider.center().y); });
    controller.driver.release();
    controller.settle();
    measure(controller, "another head in every frame", frames, [&](int i) {
      controller.app.explorer().editor.select({i % 12, i / 12 % 12});
    });
    controller.settle();
    measure(controller, "palette open", frames, [&](int i) {
      if (i == 0) controller.app.requests().palette = true;
      if (i > 2 && i % 4 == 0) io.AddInputCharactersUTF8("a");
    });
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
