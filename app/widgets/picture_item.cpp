#include "app/widgets/picture_item.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <utility>

#include "app/widgets/keyboard.h"

namespace headscope {

namespace {

/// Arrow keys of this frame, which are the picture's. True when they led somewhere else.
bool walk(const Scene& scene, SceneStop& stop, ImGuiID item, const TextMeasure& measure) {
  bool moved = false;
  for (const auto& [key, way] : {std::pair{ImGuiKey_LeftArrow, Way::left},
                                 {ImGuiKey_RightArrow, Way::right},
                                 {ImGuiKey_UpArrow, Way::up},
                                 {ImGuiKey_DownArrow, Way::down}}) {
    ImGui::SetKeyOwner(key, item);
    if (!ImGui::IsKeyPressed(key)) continue;
    for (int steps = ImGui::GetIO().KeyShift ? 10 : 1; steps > 0; --steps)
      if (const auto next = next_stop(scene, stop, way, measure)) stop = *next, moved = true;
  }
  return moved;
}

ImRect window_rect(const Rect& r, ImVec2 origin, float pixels) {
  const auto at = [&](double x, double y) {
    return ImVec2{origin.x + static_cast<float>(x) * pixels, origin.y + static_cast<float>(y) * pixels};
  };
  ImRect out{at(r.x, r.y), at(r.right(), r.bottom())};
  out.Floor();  // sharp
  return out;
}

}  // namespace

PictureItem picture_item(const Ui& ui, const char* id, ImVec2 size, const Scene& scene, std::optional<SceneStop>& stop,
                         ImVec2 origin, float pixels) {
  PictureItem out;
  ImGuiContext& g = *ImGui::GetCurrentContext();
  const ImGuiID item = ImGui::GetID(id);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImRect whole{at, {at.x + size.x, at.y + size.y}};
  ImRect reached = whole;
  out.at_keys = stop && walking_controls() && ImGui::GetFocusID() == item;
  bool moved = g.NavJustMovedToId == item;
  if (out.at_keys) {
    moved |= walk(scene, *stop, item, ui.fonts);
    reached = window_rect(stop->rect, origin, pixels);
  }
  ImGui::ItemSize(size);
  if (!ImGui::ItemAdd(whole, item, &reached, stop ? ImGuiItemFlags_None : ImGuiItemFlags_NoNav)) return out;
  bool hovered = false, held = false;
  out.pressed = ImGui::ButtonBehavior(whole, item, &hovered, &held,
                                      ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight);
  IMGUI_TEST_ENGINE_ITEM_INFO(item, id, g.LastItemData.StatusFlags);
  if (out.at_keys && moved)
    ImGui::ScrollToRect(ImGui::GetCurrentWindow(), reached,
                        ImGuiScrollFlags_KeepVisibleEdgeX | ImGuiScrollFlags_KeepVisibleEdgeY);
  return out;
}

void frame_stop(const Ui& ui, const char* id, const SceneStop& stop, ImVec2 origin, float pixels) {
  const ImRect rect = window_rect(stop.rect, origin, pixels);
  ImGui::RenderNavCursor(rect, ImGui::GetID(id));
  ui.name(fmt::format("keys at {}/{}", id, stop.mark->id), rect.Min, rect.Max);
}

}  // namespace headscope
