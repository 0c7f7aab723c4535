#include "app/widgets/plots.h"

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/picture_item.h"
#include "app/widgets/scene_view.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

/// What every line is at its value nearest to `share` of the way; first that value of x, which `share` becomes.
std::vector<std::string> readings(const LineChart& chart, const PlotArea& area, double& share) {
  std::vector<std::string> lines;
  const double asked = share;
  double nearest_x = area.x_at(share);
  for (const ChartSeries& s : chart.series) {
    if (s.x.empty() || s.quiet) continue;
    const auto best = std::ranges::min_element(
        s.x, {}, [&](double x) { return std::isfinite(area.share_of(x)) ? std::abs(area.share_of(x) - asked) : 1e9; });
    nearest_x = *best;
    const double y = s.y[static_cast<std::size_t>(best - s.x.begin())];
    lines.push_back((s.title.empty() ? chart.y_title : s.title) + "  " + short_number(y, 4));
  }
  if (lines.empty()) return lines;
  share = area.share_of(nearest_x);
  lines.insert(lines.begin(), (chart.x_title.empty() ? "x" : chart.x_title) + " " + short_number(nearest_x, 4));
  return lines;
}

}  // namespace

PlotTouch plot(const Ui& ui, const char* id, LineChart chart, bool readout) {
  PlotTouch touch;
  chart.pickable = true;
  chart.width = std::max(std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale)), 40.0);
  if (ui.pictures.asked)
    ui.pictures.add(id, chart.y_title, chart.width * chart.height,
                    [chart](const Style& style) { return line_chart_scene(chart, style); });
  const Scene scene = line_chart_scene(chart, ui.style());
  const ImVec2 origin = ImGui::GetCursorScreenPos(), size{ui.px(chart.width), ui.px(chart.height)};
  // Where the keyboard is, or was last, counts the values; the chart itself may be another one by now.
  int& place = *ImGui::GetStateStorage()->GetIntRef(ImGui::GetID(id), 0);
  const Mark* ground = find(scene, "plot");
  const PlotArea* area = meaning<PlotArea>(ground);
  std::optional<SceneStop> stop;
  if (area && !area->stops.empty()) stop = same_stop(scene, "plot", Cell{0, place}, {}, ui.fonts);
  const PictureItem item = picture_item(ui, id, size, scene, stop, origin, ui.scale);
  if (stop) place = static_cast<int>(stop->cell->column);
  touch.hovered = item.at_keys || ImGui::IsItemHovered();
  touch.clicked = item.pressed;
  draw_marks(ui, scene, origin);
  if (item.at_keys) frame_stop(ui, id, *stop, origin, ui.scale);
  if (!area || !touch.hovered) return touch;
  const Rect rect = std::get<Box>(ground->shape).rect;
  const double at =
      item.at_keys ? stop->rect.center().x : static_cast<double>((ImGui::GetMousePos().x - origin.x) / ui.scale);
  double share = std::clamp((at - rect.x) / rect.w, 0.0, 1.0);
  touch.x = area->x_at(share);
  if (!readout) return touch;
  if (const auto lines = readings(chart, *area, share); !lines.empty()) {
    const float x = origin.x + ui.px(rect.x + share * rect.w);
    ImGui::GetWindowDrawList()->AddLine({x, origin.y + ui.px(rect.y)}, {x, origin.y + ui.px(rect.bottom())},
                                        col(with_opacity(ui.theme.muted, 0.5)), 1);
    tooltip(ui, lines);
  }
  return touch;
}

}  // namespace headscope
