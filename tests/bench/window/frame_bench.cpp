// How long the window's thread works for one frame, with 144 thumbnails and a map of 1,024 tokens on screen, and while
// a map of 32,768 is walked through; how long the first picture takes. Arguments: frames (300), tokens of the long map
// (32,768; 0 = none), a model to type a text for besides the bundled example.
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
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/all_workspaces.h"
#include "app/window/app.h"
#include "core/base/random.h"
#include "core/base/thread_time.h"
#include "tests/gui/driver.h"
#include "tests/support/model_folder.h"
#include "tests/support/paths.h"
#include "viz/gl/heatmap_painter.h"

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

/// Frames while `act` does something before each; prints median, 95th and 99th percentile, and maximum.
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
  fmt::print("{:<40} build {:6.2f} {:6.2f} {:6.2f} {:6.2f}   draw {:6.2f} {:6.2f} {:6.2f} {:6.2f}\n", what,
             at(build, 0.5), at(build, 0.95), at(build, 0.99), at(build, 1), at(draw, 0.5), at(draw, 0.95),
             at(draw, 0.99), at(draw, 1));
}

ImVec2 inside(const Item& item, int i) {
  const float t = static_cast<float>(i % 97) / 97, u = static_cast<float>(i % 61) / 61;
  return {item.min.x + t * (item.max.x - item.min.x), item.min.y + u * (item.max.y - item.min.y)};
}

std::string long_text(std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += "When Mary and John went to the store, John gave a drink to ";
  text.resize(bytes);
  return text;
}

void first_picture() {
  const auto begin = Clock::now();
  Controller controller(offscreen(1600, 1000));
  const auto shown = [&] { return controller.app.settled() && controller.app.explorer().results().facts; };
  while (!shown()) controller.app.frame();
  controller.app.frame();
  fmt::print("first picture, all panels of the bundled example: {:.0f} ms\n",
             std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
}

void many_heads(int frames) {
  const auto folder = headscope::testing::scratch_dir("frame-bench");
  headscope::testing::write_random_gpt2(folder, 12, 12, 96, 1024);
  AppOptions options = offscreen(1600, 1000);
  options.model = folder;
  options.text = long_text(1024);
  options.name_items = true;  // to find things; it costs some time of every frame, which is left in
  Controller controller(options);
  controller.settle();
  fmt::print("12 × 12 heads, {} tokens; milliseconds: median, 95 %, 99 %, most\n",
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
}

/// From a letter in the line of the text to every map and metric of the text with it in the window's hands. What is
/// drawn then is a frame, as measured elsewhere; a software driver would take the same processors for it.
/// `pause`: nothing is drawn, and so many seconds go by before the next letter, in which the window goes on as it does.
void typing(const char* what, const std::filesystem::path& model, int letters, std::optional<double> pause = {}) {
  AppOptions options = offscreen(1600, 1000);
  options.model = model;
  options.text = "Once upon a time there was a girl who lived in a village by the sea. Every day she walked";
  Controller controller(options);
  controller.settle();
  Explorer& explorer = controller.app.explorer();
  const auto there = [&](const std::string& text) {
    const auto& run = explorer.results().run;
    return run && run->request.text == text && explorer.results().facts &&
           explorer.results().facts->trace == run->trace;
  };
  std::vector<double> took;
  for (int i = 0; i < letters; ++i) {
    const std::string now = explorer.editor.document().text + " abandoned birds come down every fall"[i % 37];
    const auto begin = Clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    const auto frame = [&] {
      explorer.frame(std::chrono::duration<double>(Clock::now().time_since_epoch()).count());
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // the processors are the model's
    };
    explorer.editor.adjust([&](Document& document) { document.text = now; });
    while (!there(now)) frame();
    took.push_back(1e3 * passed());
    if (!pause) controller.app.frame();
    while (pause && passed() < *pause * (0.5 + i % 7 / 6.0)) frame();
  }
  std::ranges::sort(took);
  const auto at = [&](double share) {
    return took[static_cast<std::size_t>(share * static_cast<double>(took.size()))];
  };
  fmt::print("{}: from a letter to its maps and metrics, {}, {} tokens: median {:.1f}, 95 % {:.1f}, 99 % {:.1f} ms\n",
             what, pause ? "nothing drawn" : "each drawn", explorer.results().run->trace->tokens.size(), at(0.5),
             at(0.95), at(0.99));
}

/// Two heads over `tokens`: the wheel goes in to where every weight is a cell, the hand moves that part.
void long_map(int frames, int tokens) {
  const auto folder = headscope::testing::scratch_dir("frame-bench-long");
  headscope::testing::write_random_gpt2(folder, 1, 2, 64, tokens);
  AppOptions options = offscreen(1600, 1000);
  options.model = folder;
  options.text = long_text(static_cast<std::size_t>(tokens));
  const auto begin = Clock::now();
  Controller controller(options);
  controller.settle();
  fmt::print("2 heads, {} tokens, on screen after {:.1f} s; milliseconds: median, 95 %, 99 %, most\n",
             controller.app.explorer().results().run->trace->tokens.size(),
             std::chrono::duration<double>(Clock::now() - begin).count());
  const ImVec2 middle{800, 480};
  ImGuiIO& io = ImGui::GetIO();
  const auto at = [&](float x, float y) { io.AddMousePosEvent(middle.x + x, middle.y + y); };
  const auto turn = [&](int i, float most) {
    const auto t = static_cast<float>(i);
    at(most * std::sin(0.19f * t), most * std::cos(0.13f * t));
  };
  measure(controller, "nothing moves", frames, [](int) {});
  measure(controller, "pointer over the map", frames, [&](int i) { turn(i, 120); });
  constexpr int in = 44;  // turns of the wheel from the whole map to single weights
  measure(controller, "wheel: the whole way in and out", frames, [&](int i) {
    at(40, 60);
    io.AddMouseWheelEvent(0, i / in % 2 == 0 ? 1.f : -1.f);
  });
  controller.app.requests().reset_zoom = true;
  controller.settle();
  for (const int turns : {12, 24, 40}) {
    for (int i = 0; i < turns; ++i) {
      at(40, 60);
      io.AddMouseWheelEvent(0, 1);
      controller.app.frame();
    }
    controller.settle();
    at(0, 0);
    controller.driver.press();
    measure(controller, fmt::format("dragged, {} turns of the wheel in", turns), frames, [&](int i) { turn(i, 120); });
    controller.driver.release();
    controller.app.requests().reset_zoom = true;
    controller.settle();
  }
  measure(controller, "from strong cell to strong cell", frames,
          [&](int i) { controller.app.requests().strong_cell += i % 8 == 0 ? 1 : 0; });
}

/// All numbers of an atlas are new, as after an edit in the first layer: upload, then paint.
void new_maps(int frames, int heads) {
  constexpr Index cells = 24;
  Window window({.title = "bench", .width = 640, .height = 640, .offscreen = true});
  HeatmapPainter painter;
  HeatmapSheets sheets;
  HeatmapLayer layer;
  std::vector<Heatmap> runs[2];
  Random random(1);
  for (std::vector<Heatmap>& maps : runs)
    for (int i = 0; i < heads; ++i) {
      Heatmap map;
      map.rect = {i % 32 * 20.0, std::floor(i / 32) * 20.0, 18, 18};
      map.values = Tensor::uninitialized({cells, cells});
      for (float& value : map.values.mutable_values()) value = static_cast<float>(random.uniform());
      map.masked.assign(static_cast<std::size_t>(cells * cells), 0);
      map.colormap = &colormap("inferno");
      maps.push_back(std::move(map));
    }
  std::vector<double> upload, paint;
  for (int i = 0; i < frames; ++i) {
    std::vector<const Heatmap*> maps;
    for (const Heatmap& map : runs[i % 2]) maps.push_back(&map);
    const double begin = thread_seconds();
    sheets.show(maps);
    const double there = thread_seconds();
    painter.paint(layer, maps, sheets, {640, 640, 1, 0, 0});
    paint.push_back(1e3 * (thread_seconds() - there));
    upload.push_back(1e3 * (there - begin));
  }
  std::ranges::sort(upload), std::ranges::sort(paint);
  fmt::print("{} maps of {} × {} with new numbers: uploaded in {:.2f} ms, painted in {:.2f} (medians)\n", heads, cells,
             cells, upload[upload.size() / 2], paint[paint.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  const int frames = argc > 1 ? std::atoi(argv[1]) : 300, tokens = argc > 2 ? std::atoi(argv[2]) : 32768;
  try {
    first_picture();
    const auto type = [](const char* what, const std::filesystem::path& model) {
      typing(what, model, 100);
      typing(what, model, 100, 0.06);
    };
    type("tiny-llama", headscope::testing::source_dir() / "models" / "tiny-llama");
    if (argc > 3) type(argv[3], argv[3]);
    for (const int heads : {144, 1024}) new_maps(frames, heads);
    many_heads(frames);
    if (tokens > 0) long_map(frames, tokens);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
