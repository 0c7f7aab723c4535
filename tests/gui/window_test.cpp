// The window itself, the shell round the workspaces, and the small controls, used as a person uses them.

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "app/widgets/controls.h"
#include "app/widgets/plots.h"
#include "app/widgets/scene_hit.h"
#include "app/widgets/scene_view.h"
#include "app/window/shell.h"
#include "app/window/window_options.h"
#include "core/base/error.h"
#include "tests/gui/driver.h"
#include "viz/export/raster.h"

namespace headscope::window_test {

using testing::Driver;

namespace {

WindowOptions offscreen(int width = 800, int height = 600, const char* theme = "dark") {
  WindowOptions options;
  options.width = width, options.height = height;
  options.offscreen = options.name_items = true;
  options.theme = theme;
  return options;
}

/// Draws `content` in one window that fills everything.
Window::Draw page(std::function<void(Ui&)> content) {
  return [content = std::move(content)](Ui& ui) {
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
    ImGui::Begin("page", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
    content(ui);
    ImGui::End();
  };
}

int lit(const Image& image, Color ground) {
  int count = 0;
  for (std::size_t i = 0; i < image.rgba.size(); i += 4)
    count += image.rgba[i] != ground.r || image.rgba[i + 1] != ground.g || image.rgba[i + 2] != ground.b;
  return count;
}

}  // namespace

TEST_CASE("the shell shows its columns, and their borders can be dragged within limits") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen(1600, 1000));
  ShellLayout layout;
  ShellContent content;
  content.workspaces = {{"Explore", true, ""}, {"Train", true, ""}};
  std::array<float, 3> widths{};
  content.left = [&](Ui&) { widths[0] = ImGui::GetWindowWidth(); };
  content.middle = [&](Ui&) { widths[1] = ImGui::GetWindowWidth(); };
  content.right = [&](Ui&) { widths[2] = ImGui::GetWindowWidth(); };
  ShellEvents last;
  Driver driver(window, [&](Ui& ui) {
    const ShellEvents events = draw_shell(ui, content, layout);
    if (events.workspace >= 0 || events.palette) last = events;
  });
  driver.frames(2);
  CHECK(widths == std::array<float, 3>{372, 878, 350});
  driver.drag({372, 500}, {472, 500});
  CHECK(layout.left == doctest::Approx(472));
  CHECK(widths[0] + widths[1] + widths[2] == 1600);
  driver.drag({472, 500}, {1500, 500});
  driver.frames(2);
  CHECK(layout.left == ShellLayout::most_side);
  // Past the limit and back with the button held, the border is where it was: and never outside its limits.
  const float border = widths[0];
  driver.move_to({border, 500});
  driver.press();
  driver.move_to({1500, 500});
  CHECK(layout.left == ShellLayout::most_side);
  driver.move_to({10, 500});
  CHECK(layout.left == ShellLayout::least_side);
  driver.move_to({border, 500});
  driver.release();
  CHECK(layout.left == ShellLayout::most_side);
  driver.click("Train");
  CHECK(last.workspace == 1);
  driver.click("Ctrl K");
  CHECK(last.palette);
}

TEST_CASE("a narrow window keeps room for the middle column") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen(900, 600));
  ShellLayout layout{640, 640};
  float middle = 0;
  ShellContent content;
  content.middle = [&](Ui&) { middle = ImGui::GetWindowWidth(); };
  Driver driver(window, [&](Ui& ui) { draw_shell(ui, content, layout); });
  driver.frames(3);
  CHECK(middle >= 419);
}

TEST_CASE("segments, sliders and chips answer to clicks and drags") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen());
  int chosen = 0, clicks = 0;
  double temperature = 1;
  Driver driver(window, page([&](Ui& ui) {
                  constexpr std::array labels{"Map", "Arcs", "Row"};
                  segmented(ui, "view", labels, chosen);
                  slider(ui, "Temperature", temperature, {.low = 0.1, .high = 10, .usual = 1, .logarithmic = true});
                  if (token_chip(ui, "␣John", "token 3", {.shade = 0.5}).clicked) ++clicks;
                  if (button(ui, "Zero-ablate")) ++clicks;
                }));
  driver.click("Row");
  CHECK(chosen == 2);
  driver.click("Map");
  CHECK(chosen == 0);
  driver.click("token 3");
  driver.click("Zero-ablate");
  CHECK(clicks == 2);
  const Item line = driver.item("Temperature");
  const float y = line.center().y;
  driver.drag({line.center().x, y}, {line.max.x + 50, y});
  CHECK(temperature == doctest::Approx(10));
  driver.click_at({line.min.x + 1, y});
  CHECK(temperature == doctest::Approx(0.1));
  driver.click_at({line.center().x, y});
  CHECK(temperature == doctest::Approx(1).epsilon(0.02));  // the middle of a ratio scale
  driver.frames(40);
  driver.double_click("Temperature");
  CHECK(temperature == 1);
}

TEST_CASE("a scene in the window has the printer's cells, and the pointer finds its marks") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen(600, 500));
  auto scene = std::make_shared<Scene>();
  scene->width = 400, scene->height = 300;
  scene->background = theme("dark").background;
  Heatmap map;
  map.rect = {40, 30, 160, 160};
  map.values = Tensor::from({2, 2}, std::array{0.f, 1.f, 0.5f, 0.25f});
  map.colormap = &colormap("inferno");
  scene->add({map, "map", ""});
  scene->add({Box{{220, 40, 50, 60}, rgb(0x00FF00), {0, 0, 0, 0}, 0, 0}, "bar.1", ""});
  scene->add({Box{{30, 20, 180, 180}, {0, 0, 0, 0}, rgb(0xFFFFFF), 1, 0}, "frame", ""});
  scene->add({Curve{{220, 150}, {260, 150}, {300, 250}, {340, 250}, rgb(0xFF0000), 2}, "thread.0.1", ""});
  scene->add({Text{{60, 260}, "When", {FontRole::mono, 14, 400}, rgb(0xFFFFFF), Anchor::start, 0}, "label", ""});
  SceneView view;
  view.show(scene);
  SceneCamera camera;
  SceneTouch touch;
  std::string clicked;
  {
    Driver driver(window, page([&](Ui& ui) {
                    touch = view.draw(ui, "scene", camera, {.zoomable = true});
                    if (touch.clicked && touch.mark) clicked = touch.mark->id;
                  }));
    driver.frames(2);
    const Image shown = window.capture();
    const auto pixel = [&](double x, double y) {
      const ImVec2 at = touch.window({x, y});
      return shown.at(static_cast<int>(at.x), static_cast<int>(at.y));
    };
    CHECK(pixel(80, 70) == colormap("inferno").at(0));
    CHECK(pixel(160, 70) == colormap("inferno").at(1));
    CHECK(pixel(80, 150) == colormap("inferno").at(0.5));
    CHECK(pixel(160, 150) == colormap("inferno").at(0.25));
    CHECK(pixel(240, 70) == rgb(0x00FF00));

    driver.click("scene/bar.1");
    CHECK(clicked == "bar.1");
    driver.click("scene/thread.0.1");
    CHECK(clicked == "thread.0.1");
    driver.click("scene/label");
    CHECK(clicked == "label");
    driver.click("scene/map");
    CHECK(clicked == "map");
    driver.move_to(touch.window({160, 150}));
    REQUIRE(touch.cell);
    CHECK(*touch.cell == Cell{1, 1});

    const Point before = touch.at;
    driver.wheel(3);
    CHECK(camera.zoom == doctest::Approx(1.2 * 1.2 * 1.2));
    CHECK(touch.at.x == doctest::Approx(before.x).epsilon(0.01));  // the point under the pointer stays there
    CHECK(touch.at.y == doctest::Approx(before.y).epsilon(0.01));
    const SceneCamera zoomed = camera;
    driver.drag({300, 250}, {280, 240});
    CHECK(camera.offset.x == doctest::Approx(zoomed.offset.x - 20));
    driver.wheel(-30);
    CHECK(camera == SceneCamera{});
  }
}

TEST_CASE("text is as wide as it measures, at every scale, and other scripts find a font or say so") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const double scale : {1.0, 2.0}) {
    WindowOptions options = offscreen(700, 200);
    options.scale = scale;
    Window window(options);
    const Text text{{20, 60}, "Effective tokens 2.6 of 14", {FontRole::ui, 20, 400}, rgb(0xFFFFFF), Anchor::start, 0};
    TextBox box;
    Driver driver(window, [&](Ui& ui) {
      box = ui.fonts.measure(text.text, text.font);
      draw_text(ui, *ImGui::GetBackgroundDrawList(), text, {0, 0});
    });
    driver.frames(3);
    const Image image = window.capture();
    int left = image.width, right = 0;
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x)
        if (image.at(x, y).r > 120) left = std::min(left, x), right = std::max(right, x + 1);
    CHECK(std::abs(left - (20 + box.ink.x) * scale) <= 2);
    CHECK(std::abs(right - (20 + box.ink.right()) * scale) <= 2);
    CHECK(box.ascent == doctest::Approx(20 * 0.97).epsilon(0.1));
  }
}

TEST_CASE("themes change every colour of the next frame") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen(640, 420));
  Driver driver(window, page([](Ui& ui) { button(ui, "Export"); }));
  for (const char* id : {"dark", "light", "projector"}) {
    window.set_theme(id);
    driver.frames(2);
    const Image image = window.capture();
    CHECK(image.at(600, 400) == theme(id).background);
    CHECK(lit(image, theme(id).background) > 300);
  }
  CHECK_THROWS_AS(window.set_theme("sepia"), Error);
}

TEST_CASE("keys typed faster than frames are all taken in, with nothing else happening") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen(640, 420));
  std::string text;
  Driver driver(window, page([&](Ui& ui) {
                  ImGui::SetKeyboardFocusHere();
                  input_line(ui, "##line", "", text);
                }));
  driver.frames(10);
  // Dear ImGui takes one change of a key in a frame: forty of them, more than the frames owed after an event.
  ImGuiIO& io = ImGui::GetIO();
  for (int i = 0; i < 10; ++i) {
    io.AddKeyEvent(ImGuiKey_X, true);
    io.AddInputCharacter('x');
    io.AddKeyEvent(ImGuiKey_X, false);
    io.AddInputCharacter('y');
  }
  std::jthread watch([&](const std::stop_token& over) {  // lest a test that fails wait for ever
    for (int i = 0; i < 300 && !over.stop_requested(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!over.stop_requested()) window.close();
  });
  while (text.size() < 20 && !window.closing()) {
    window.wait();
    driver.frames();
  }
  watch.request_stop();
  CHECK(text == "xyxyxyxyxyxyxyxyxyxy");
  CHECK_FALSE(window.closing());
}

TEST_CASE("a worker wakes the sleeping window") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen(640, 420));
  Driver driver(window, page([](Ui&) {}));
  driver.frames(10);
  std::thread worker([&] { window.wake(); });
  window.wait();
  worker.join();
  CHECK_FALSE(window.closing());
  window.close();
  window.wait();
  CHECK(window.closing());
}

TEST_CASE("a plot reads out the place under the pointer and marks where you are") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen(640, 420));
  PlotTouch touch;
  bool clicked = false;
  Driver driver(window, page([&](Ui& ui) {
                  LineChart chart;
                  chart.series = {{"", ui.theme.accent, {0.1, 1, 10}, {0, 1, 2}}};
                  chart.log_x = true;
                  chart.marker = Point{1, 1};
                  touch = plot(ui, "curve", chart);
                  clicked = clicked || touch.clicked;
                }));
  const Item curve = driver.item("curve");
  driver.move_to({curve.center().x + 20, curve.center().y});
  CHECK(touch.hovered);
  const double right = touch.x;
  driver.move_to({curve.center().x - 20, curve.center().y});
  CHECK(touch.x < right);
  CHECK(touch.x > 0.1);
  CHECK(right < 10);
  driver.click("curve");
  CHECK(clicked);
  // By keyboard: from value to value.
  clicked = false;
  driver.key(ImGuiKey_Tab);
  CHECK(touch.x == doctest::Approx(0.1));
  driver.key(ImGuiKey_RightArrow);
  CHECK(touch.x == doctest::Approx(1));
  driver.key(ImGuiKey_RightArrow, ImGuiMod_Shift);
  CHECK(touch.x == doctest::Approx(10));
  CHECK_FALSE(clicked);
  driver.key(ImGuiKey_Enter);
  CHECK(clicked);
}

TEST_CASE("sizes are read, and wrong ones are refused with what was found") {
  CHECK(parse_size("1600x1000") == std::pair(1600, 1000));
  for (const char* wrong : {"", "x", "1600", "1600x", "1600x10000000", "-5x900", "axb", "800x600x3"})
    CHECK_THROWS_AS(parse_size(wrong), Error);
}

TEST_CASE("distance to segments and curves") {
  CHECK(distance({0, 5}, Point{-10, 0}, Point{10, 0}) == doctest::Approx(5));
  CHECK(distance({13, 4}, Point{-10, 0}, Point{10, 0}) == doctest::Approx(5));
  CHECK(distance({5, 3}, Curve{{0, 0}, {3, 0}, {7, 0}, {10, 0}, {}, 1}) == doctest::Approx(3));
}

}  // namespace headscope::window_test
