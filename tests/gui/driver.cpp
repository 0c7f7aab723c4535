#include "tests/gui/driver.h"

#include <doctest/doctest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace headscope::testing {

bool have_display() {
#ifdef __linux__
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return set("DISPLAY") || set("WAYLAND_DISPLAY");
#else
  return true;
#endif
}

Driver::Driver(Window& window, std::function<void()> frame) : window_(window), frame_(std::move(frame)) {
  ImGuiContext& context = *ImGui::GetCurrentContext();
  context.ErrorCallback = [](ImGuiContext*, void*, const char* complaint) { FAIL_CHECK(complaint); };
}

Driver::~Driver() {
  if (ImGuiContext* context = ImGui::GetCurrentContext()) context->ErrorCallback = nullptr;
}

void Driver::frames(int count) {
  for (int i = 0; i < count; ++i) frame_();
}

bool Driver::until(const std::function<bool()>& done, int most) {
  for (int i = 0; i < most; ++i) {
    if (done()) return true;
    frames();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the worker needs the processor too
  }
  return done();
}

bool Driver::shown(std::string_view name) {
  frames(2);
  return window_.items().find(name).has_value();
}

bool Driver::told(std::string_view words) {
  frames(2);
  return std::ranges::any_of(window_.items().items(), [&](const Item& item) {
    return item.label.starts_with("tooltip: ") && item.label.find(words) != std::string::npos;
  });
}

Item Driver::item(std::string_view name) {
  frames(2);
  until([&] { return window_.items().find(name).has_value(); }, 200);  // what the worker makes may come a little later
  const std::optional<Item> found = window_.items().find(name);
  if (!found) {
    std::string all;
    for (const Item& item : window_.items().items()) all += " [" + item.label + "]";
    FAIL("nothing on screen is called \"" << std::string(name) << "\"; there are:" << all);
  }
  return *found;
}

void Driver::move_to(ImVec2 at) {
  ImGui::GetIO().AddMousePosEvent(at.x, at.y);
  frames(2);
}

void Driver::press(int button) {
  ImGui::GetIO().AddMouseButtonEvent(button, true);
  frames();
}

void Driver::release(int button) {
  ImGui::GetIO().AddMouseButtonEvent(button, false);
  frames(2);
}

void Driver::click_at(ImVec2 at, int button) {
  move_to(at);
  press(button);
  release(button);
}

void Driver::double_click(std::string_view name) {
  const ImVec2 at = item(name).center();
  click_at(at);
  press();
  release();
}

void Driver::drag(ImVec2 from, ImVec2 to, int steps) {
  move_to(from);
  press();
  for (int i = 1; i <= steps; ++i) {
    const float t = static_cast<float>(i) / static_cast<float>(steps);
    move_to({from.x + (to.x - from.x) * t, from.y + (to.y - from.y) * t});
  }
  release();
}

void Driver::wheel(float lines) {
  ImGui::GetIO().AddMouseWheelEvent(0, lines);
  frames(2);
}

void Driver::key(ImGuiKey key, ImGuiKey modifier) {
  ImGuiIO& io = ImGui::GetIO();
  io.KeyRepeatDelay = 3600;  // frames of a busy machine may be long: a press is one press
  if (modifier != ImGuiKey_None) io.AddKeyEvent(modifier, true);
  io.AddKeyEvent(key, true);
  frames(2);
  io.AddKeyEvent(key, false);
  if (modifier != ImGuiKey_None) io.AddKeyEvent(modifier, false);
  frames(2);
}

void Driver::type(std::string_view text) {
  ImGui::GetIO().AddInputCharactersUTF8(std::string(text).c_str());
  frames(2);
}

}  // namespace headscope::testing
