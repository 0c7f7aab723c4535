#include "app/workspaces/map_part.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "core/base/words.h"

namespace headscope {

namespace {

constexpr Index fewest_shown = 4;
constexpr double wheel_step = 1.2;

}  // namespace

void MapPart::of(Index n_query, Index n_key) {
  n_query_ = n_query;
  n_key_ = n_key;
  if (part_ && (part_->n_query > n_query || part_->n_key > n_key)) reset();
  if (part_) place(part_->query, part_->key);
}

std::optional<MapRegion> MapPart::region() const {
  if (!part_) return std::nullopt;
  const auto first = [](double at, Index count, Index all) {
    return std::clamp<Index>(std::lround(at), 0, std::max<Index>(all - count, 0));
  };
  return MapRegion{first(part_->query, part_->n_query, n_query_), std::min(part_->n_query, n_query_),
                   first(part_->key, part_->n_key, n_key_), std::min(part_->n_key, n_key_)};
}

SceneViewOptions MapPart::view() {
  SceneViewOptions how;
  how.zoomable = true;  // the wheel is the part's, not the column's; the picture itself is not enlarged
  how.most_zoom = 1;
  how.pannable = false;
  how.tooltips = false;
  return how;
}

bool MapPart::follow(const SceneTouch& touch, const Rect& map, bool drag) {
  bool changed = false;
  if (const double lines = static_cast<double>(ImGui::GetIO().MouseWheel); touch.hovered && lines != 0) {
    zoom(touch, map, lines);
    changed = true;
  }
  if (drag && part_ && touch.held && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4)) {
    const ImVec2 moved = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 4);
    ImGui::ResetMouseDragDelta(ImGuiMouseButton_Left);
    const double pixels = static_cast<double>(touch.pixels);
    place(part_->query - static_cast<double>(moved.y) / pixels / map.h * static_cast<double>(part_->n_query),
          part_->key - static_cast<double>(moved.x) / pixels / map.w * static_cast<double>(part_->n_key));
    changed = true;
  }
  return changed;
}

void MapPart::place(double query, double key) {
  if (!part_) return;
  part_->query = std::clamp(query, 0.0, static_cast<double>(n_query_ - part_->n_query));
  part_->key = std::clamp(key, 0.0, static_cast<double>(n_key_ - part_->n_key));
}

bool MapPart::use_minimap(const SceneTouch& touch, const Scene& scene) {
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) on_minimap_ = false;
  const Mark* mark = find(scene, "minimap");
  if (!touch.held || !mark || !part_) return false;
  if (touch.pressed) on_minimap_ = touch.mark == mark;
  if (!on_minimap_) return false;
  const Rect& rect = std::get<Heatmap>(mark->shape).rect;
  place((touch.at.y - rect.y) / rect.h * static_cast<double>(n_query_) - static_cast<double>(part_->n_query) / 2,
        (touch.at.x - rect.x) / rect.w * static_cast<double>(n_key_) - static_cast<double>(part_->n_key) / 2);
  return true;
}

void MapPart::reset_button(Ui& ui, const SceneTouch& touch, const Scene& scene) {
  const Mark* mark = find(scene, "minimap");
  if (!mark || !part_) return;
  const Rect& rect = std::get<Heatmap>(mark->shape).rect;
  const ImVec2 after = ImGui::GetCursorScreenPos(), at = touch.window({rect.x - 1, rect.bottom() + 8});
  ImGui::SetCursorScreenPos({std::floor(at.x), std::floor(at.y)});
  const UseFont font(ui, ui.small());
  if (button(ui, to_say("Whole map"), ui.px(22))) reset();
  if (ImGui::IsItemHovered()) tooltip(ui, {said("The whole map again (0)")});
  ImGui::SetCursorScreenPos(after);
}

void MapPart::reveal(Index query) {
  if (!part_) return;
  const MapRegion shown = *region();
  if (query < shown.query) place(static_cast<double>(query), part_->key);
  if (query >= shown.query + shown.n_query) place(static_cast<double>(query - shown.n_query + 1), part_->key);
}

void MapPart::reveal_key(Index key) {
  if (!part_) return;
  const MapRegion shown = *region();
  if (key < shown.key) place(part_->query, static_cast<double>(key));
  if (key >= shown.key + shown.n_key) place(part_->query, static_cast<double>(key - shown.n_key + 1));
}

void MapPart::show(Index query, Index key, std::optional<Index> count) {
  if (count && (*count < n_query_ || *count < n_key_))
    part_ = Part{0, 0, std::min(*count, n_query_), std::min(*count, n_key_)};
  if (!part_) return;
  const MapRegion shown = *region();
  const bool inside =
      query >= shown.query && query < shown.query + shown.n_query && key >= shown.key && key < shown.key + shown.n_key;
  if (inside && !count) return;
  place(static_cast<double>(query - part_->n_query / 2), static_cast<double>(key - part_->n_key / 2));
}

/// The cell under the pointer stays under it.
void MapPart::zoom(const SceneTouch& touch, const Rect& map, double lines) {
  const Part before = part_.value_or(Part{0, 0, n_query_, n_key_});
  const double factor = std::pow(wheel_step, -lines);
  // Every turn of the wheel changes something, also where few cells are left.
  const auto count = [&](Index now, Index all) {
    const auto next = static_cast<Index>(std::lround(static_cast<double>(now) * factor));
    return std::clamp(lines > 0 ? std::min(next, now - 1) : std::max(next, now + 1), std::min(fewest_shown, all), all);
  };
  Part next{0, 0, count(before.n_query, n_query_), count(before.n_key, n_key_)};
  if (next.n_query == n_query_ && next.n_key == n_key_) return reset();
  const MapRegion shown = region().value_or(MapRegion{0, n_query_, 0, n_key_});
  const double across = std::clamp((touch.at.x - map.x) / map.w, 0.0, 0.9999),
               down = std::clamp((touch.at.y - map.y) / map.h, 0.0, 0.9999);
  const auto cells = [](double share, Index of) { return std::floor(share * static_cast<double>(of)); };
  part_ = next;
  place(static_cast<double>(shown.query) + cells(down, shown.n_query) - cells(down, next.n_query),
        static_cast<double>(shown.key) + cells(across, shown.n_key) - cells(across, next.n_key));
}

}  // namespace headscope
