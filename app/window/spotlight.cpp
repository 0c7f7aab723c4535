#include "app/window/spotlight.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace headscope {

namespace {

constexpr ImU32 dim = IM_COL32(0, 0, 0, 165);
constexpr float disc = 0.16f;  // of the window's height

/// What is in none of the areas, as rectangles: between all their edges, row by row.
void dim_around(ImDrawList& draw, ImVec2 size, const std::vector<std::pair<ImVec2, ImVec2>>& areas) {
  std::vector<float> across{0, size.x}, down{0, size.y};
  for (const auto& [min, max] : areas) {
    for (const float x : {min.x, max.x}) across.push_back(std::clamp(std::round(x), 0.f, size.x));
    for (const float y : {min.y, max.y}) down.push_back(std::clamp(std::round(y), 0.f, size.y));
  }
  std::ranges::sort(across);
  std::ranges::sort(down);
  for (std::size_t y = 0; y + 1 < down.size(); ++y)
    for (std::size_t x = 0; x + 1 < across.size(); ++x) {
      const ImVec2 from{across[x], down[y]}, to{across[x + 1], down[y + 1]};
      const ImVec2 middle{(from.x + to.x) / 2, (from.y + to.y) / 2};
      const bool lit = std::ranges::any_of(areas, [&](const auto& area) {
        return middle.x > area.first.x && middle.x < area.second.x && middle.y > area.first.y &&
               middle.y < area.second.y;
      });
      if (!lit) draw.AddRectFilled(from, to, dim);
    }
}

}  // namespace

void draw_spotlight(const Ui& ui) {
  if (ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel)) return;
  const ImGuiIO& io = ImGui::GetIO();
  const ImVec2 size = io.DisplaySize;
  // A window of its own, so that tooltips are above it.
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
  ImGui::Begin("spotlight", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoInputs | ImGuiWindowFlags_NoBackground |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoNav);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto& areas = ui.framed.areas;
  if (!areas.empty()) {
    dim_around(draw, size, areas);
    for (const auto& [min, max] : areas) ui.name("lit", min, max);
  } else if (ImGui::IsMousePosValid()) {
    // The dark is the thick rim of a ring whose inside is the disc.
    const float radius = disc * size.y, thick = 2 * (size.x + size.y);
    draw.AddCircle(io.MousePos, radius + thick / 2, dim, 128, thick);
    ui.name("lit", {io.MousePos.x - radius, io.MousePos.y - radius}, {io.MousePos.x + radius, io.MousePos.y + radius});
  }
  ImGui::End();
  ImGui::PopStyleVar();
}

}  // namespace headscope
