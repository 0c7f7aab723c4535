#include "app/workspaces/explore/cell_tools.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
constexpr double whole_weight = 160;  ///< logical pixels of dragging on the map that take a weight from 0 to 1

double hundredths(double weight) {
  return std::round(std::clamp(weight, 0.0, 1.0) * 100) / 100;
}

/// The key whose column of bars the pointer is in.
std::optional<Index> bar_at(const Scene& scene, Point at) {
  for (const Mark& mark : scene.marks) {
    const TokenAt* key = meaning<TokenAt>(&mark);
    if (!key) continue;
    const Rect bar = std::get<Box>(mark.shape).rect;
    const double slack = 0.1 * bar.w;
    if (at.x >= bar.x - slack && at.x < bar.right() + slack) return key->position;
  }
  return std::nullopt;
}
}  // namespace

void CellTools::say(const PageContext& c, double weight) const {
  const Trace& trace = *c.trace();
  tooltip(c.ui, {headscope::say("weight {:.2f}", weight),
                 headscope::say("{} {} → {} {}; the others of the row share {:.2f}", token_label(trace, drag_->query),
                                drag_->query, token_label(trace, drag_->key), drag_->key, 1 - weight)});
}

void CellTools::on_map(const PageContext& c, const SceneTouch& touch, const AttentionMap& map, const Heatmap& heat) {
  const MapTool tool = c.state().view.map_tool;
  if (!touch.held) {
    painting_.reset();
    if (drag_ && !drag_->bar) drag_.reset();
    return;
  }
  const bool on_cell = touch.mark && touch.mark->id == "map" && touch.cell;
  const Index bin = heat.row_bin;
  const Index query = on_cell ? heat.first_row - map.place().offset + touch.cell->row * bin : -1,
              key = on_cell ? heat.first_column + touch.cell->column * bin : -1;
  if (tool == MapTool::mask && on_cell) {
    if (touch.pressed) painting_ = map.masked(query, key);
    if (!painting_ || (!touch.pressed && query == painted_query_ && key == painted_key_)) return;
    painted_query_ = query, painted_key_ = key;
    try {
      const std::size_t tokens = std::max(c.trace()->tokens.size(), c.trace()->queries().size());
      c.editor.paint_mask(query, key, bin, *painting_, static_cast<Index>(tokens),
                          c.results().own_mask(c.state().document.stack));
      c.jobs.dismiss("mask");
    } catch (const Error& refused) {
      c.jobs.show({Message::Level::error, refused.what(), "mask"});
    }
  }
  if (tool != MapTool::weight) return;
  const float y = ImGui::GetIO().MousePos.y;
  if (touch.pressed && on_cell) {
    c.editor.pin(query, key);
    drag_ = Drag{false, query, key, static_cast<double>(map.weight(query, key)), y};
  }
  if (!drag_) return;
  const double up = static_cast<double>((drag_->y - y) / c.ui.scale);
  drag_->moved |= std::abs(up) > 3;
  const double weight = drag_->moved ? hundredths(drag_->start + up / whole_weight) : drag_->start;
  if (drag_->moved) c.editor.set_weight(drag_->query, drag_->key, weight);
  say(c, weight);
}

void CellTools::on_row(const PageContext& c, const SceneTouch& touch, const Scene& bars, const AttentionMap& map,
                       Index query) {
  if (!touch.held) {
    if (drag_ && drag_->bar) drag_.reset();
    return;
  }
  const float y = ImGui::GetIO().MousePos.y;
  const auto bar = bar_at(bars, touch.at);
  if (touch.pressed && bar) drag_ = Drag{true, query, *bar, static_cast<double>(map.weight(query, *bar)), y};
  if (!drag_ || !drag_->bar) return;
  drag_->moved |= std::abs(drag_->y - y) > c.ui.px(3);
  double weight = drag_->start;
  if (drag_->moved) {
    // The tip follows the pointer: the bars stand on one line, and 1 is the highest line of the axis.
    double base = 0, one = 0;
    for (const Mark& mark : bars.marks)
      if (meaning<TokenAt>(&mark))
        base = std::max(base, std::get<Box>(mark.shape).rect.bottom());
      else if (const auto* level = meaning<AxisLevel>(&mark); level && level->value == 1)
        one = std::get<Line>(mark.shape).points.front().y;
    weight = hundredths((base - touch.at.y) / std::max(base - one, 1.0));
    c.editor.set_weight(drag_->query, drag_->key, weight);
  }
  say(c, weight);
}

}  // namespace headscope
