#include "app/render/mechanism_steps_picture.h"

#include <algorithm>

#include "app/render/code_path.h"
#include "app/render/machine_pictures.h"
#include "app/render/memory_picture.h"
#include "core/base/words.h"
#include "viz/scene/compose.h"

namespace headscope {

std::vector<std::string> AxisNames::of(MechanismAxis axis, Index first, Index count) const {
  if (axis != MechanismAxis::query && axis != MechanismAxis::key) return {};
  const std::vector<std::string>& all = axis == MechanismAxis::query ? queries : keys;
  if (first + count > static_cast<Index>(all.size())) return {};
  return {all.begin() + first, all.begin() + first + count};
}

FlowMatrix flow_matrix(const MechanismStep& step, const AxisNames& names) {
  FlowMatrix m{step.id, step.title, step.formula, step.value, step.masked, {}, {}, said("value"), false};
  if (step.range == MechanismStep::Range::probability) m.low = 0, m.high = 1, m.unit = said("share");
  if (step.range == MechanismStep::Range::positive) m.low = 0;
  m.decimals = step.mixture;
  m.rows = step.row_names.empty() ? names.of(step.rows, step.first_row, step.value.dim(0)) : step.row_names;
  m.columns =
      step.column_names.empty() ? names.of(step.columns, step.first_column, step.value.dim(1)) : step.column_names;
  return m;
}

LineChart curve_chart(const MechanismCurve& curve, double width, double height, const Theme& theme) {
  LineChart chart;
  chart.width = width;
  chart.height = height;
  chart.grid = true;
  chart.log_x = curve.log_x;
  chart.log_y = curve.log_y;
  chart.y_title = curve.y_title;
  if (curve.log_x) chart.x_ticks = {0.05, 0.1, 1, 4, 10, 16, 64, 100, 256, 1024, 4096, 16384, 65536};
  chart.bars = curve.bars;
  if (curve.from_zero || curve.bars) chart.y_low = 0;
  chart.points = !curve.lines.empty() && curve.lines[0].x.size() < 30 &&
                 std::ranges::none_of(curve.lines, &MechanismCurve::Line::dots);
  const Color colors[] = {theme.accent, theme.key, theme.value, theme.muted};
  for (std::size_t at = 0; at < curve.lines.size(); ++at) {
    const MechanismCurve::Line& line = curve.lines[at];
    ChartSeries drawn{line.label, line.level ? theme.muted : colors[at % std::size(colors)], line.x, line.y};
    drawn.least = line.least, drawn.most = line.most;
    drawn.dots = line.dots, drawn.dashed = line.level;
    chart.series.push_back(std::move(drawn));
  }
  if (curve.marker) chart.marker = Point{curve.marker->first, curve.marker->second};
  return chart;
}

namespace {

Scene title_scene(const std::string& text, double width, const Style& style) {
  Scene scene;
  scene.background = style.theme.background;
  scene.width = width, scene.height = 20;
  scene.add({Text{{0, 14}, text, style.theme.body(), style.theme.text, Anchor::start, 0}, "title", ""});
  return scene;
}

}  // namespace

Scene mechanism_scene(const MechanismResult& result, const Mechanism& mechanism, const AxisNames& names, double width,
                      const Style& style) {
  constexpr double gap = 16, curve_height = 190;
  std::vector<Scene> parts;
  if (result.ring) {
    WorkerRing ring = worker_ring(*result.ring, mechanism);
    ring.width = width;
    parts.push_back(worker_ring_scene(ring, style));
  }
  if (result.tiles) {
    TileMachine machine = tile_machine(
        *result.tiles, mechanism, [](Index row) { return std::to_string(row); }, style.theme);
    machine.width = width;
    parts.push_back(tile_machine_scene(machine, style));
  }
  if (result.memory) {
    BoxDiagram diagram = memory_diagram(*result.memory);
    diagram.width = width;
    parts.push_back(box_diagram_scene(diagram, style));
  }
  if (!result.steps.empty()) {
    MatrixFlow flow;
    flow.width = width;
    for (const MechanismStep& step : result.steps) flow.matrices.push_back(flow_matrix(step, names));
    parts.push_back(matrix_flow_scene(flow, style));
  }
  if (result.path) parts.push_back(code_path_scene(*result.path, width, style));
  for (const MechanismCurve& curve : result.curves) {
    LineChart chart = curve_chart(curve, width, curve_height, style.theme);
    chart.x_title = curve.x_title;
    const Scene pair[] = {title_scene(curve.title, width, style), line_chart_scene(chart, style)};
    parts.push_back(below(pair, 0));
  }
  return below(parts, gap);
}

}  // namespace headscope
