#include "app/widgets/scene_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/widgets/scene_hit.h"
#include "core/base/nth.h"

namespace headscope {

namespace {

bool reachable(const Mark& mark) {
  if (mark.id.empty() || meaning<LabelOf>(&mark) || meaning<AxisLevel>(&mark) || meaning<Aside>(&mark)) return false;
  if (const auto* map = std::get_if<Heatmap>(&mark.shape)) return map->rows() > 0 && map->columns() > 0;
  if (const auto* area = meaning<PlotArea>(&mark)) return !area->stops.empty();
  return !mark.tooltip.empty() || mark.meaning.index() != 0;
}

/// What a mark is made of: the cells of a heatmap, the values of a chart.
struct Grid {
  Index rows = 0, columns = 0;  ///< 0: the mark is one thing, as a small map of one head is
  const Heatmap* map = nullptr;
  const PlotArea* area = nullptr;
  Rect rect;
};

Grid grid_of(const Mark& mark) {
  if (const auto* area = meaning<PlotArea>(&mark))
    return {1, static_cast<Index>(area->stops.size()), nullptr, area, std::get<Box>(mark.shape).rect};
  const auto* map = meaning<HeadId>(&mark) ? nullptr : std::get_if<Heatmap>(&mark.shape);
  return map ? Grid{map->rows(), map->columns(), map, nullptr, map->rect} : Grid{};
}

double stop_x(const Grid& grid, Index column) {
  return grid.rect.x + grid.rect.w * grid.area->share_of(nth(grid.area->stops, column));
}

SceneStop at_cell(const Mark& mark, const Grid& grid, Cell cell) {
  cell = {std::clamp<Index>(cell.row, 0, grid.rows - 1), std::clamp<Index>(cell.column, 0, grid.columns - 1)};
  if (grid.map) return {&mark, cell, grid.map->cell(cell.row, cell.column)};
  return {&mark, cell, {stop_x(grid, cell.column) - 4, grid.rect.y, 8, grid.rect.h}};
}

/// The mark, or of several cells the one nearest to a point.
SceneStop stop_near(const Mark& mark, Point point, const TextMeasure& measure) {
  const Grid grid = grid_of(mark);
  if (grid.columns == 0) return {&mark, std::nullopt, bounds(mark, measure)};
  if (grid.area) {
    Index best = 0;
    for (Index i = 1; i < grid.columns; ++i)
      if (std::abs(stop_x(grid, i) - point.x) < std::abs(stop_x(grid, best) - point.x)) best = i;
    return at_cell(mark, grid, {0, best});
  }
  const Point inside{std::clamp(point.x, grid.rect.x, grid.rect.right() - 1e-6),
                     std::clamp(point.y, grid.rect.y, grid.rect.bottom() - 1e-6)};
  return at_cell(mark, grid, cell_at(*grid.map, inside).value_or(Cell{}));
}

/// The reachable mark of the least cost; none where all cost infinitely much.
template <class Cost>
std::optional<SceneStop> cheapest(const Scene& scene, Point near, const TextMeasure& measure, const Cost& cost) {
  std::optional<SceneStop> best;
  double least = std::numeric_limits<double>::infinity();
  for (const Mark& mark : scene.marks) {
    if (!reachable(mark)) continue;
    const SceneStop stop = stop_near(mark, near, measure);
    if (const double each = cost(stop); each < least) least = each, best = stop;
  }
  return best;
}

double apart(double low, double high, double other_low, double other_high) {
  return std::max({0.0, other_low - high, low - other_high});
}

}  // namespace

std::optional<SceneStop> first_stop(const Scene& scene, const TextMeasure& measure) {
  // Rows first: a line of marks need not stand on one height to the pixel.
  return cheapest(scene, {0, 0}, measure, [](const SceneStop& s) { return 1e4 * std::round(s.rect.y / 8) + s.rect.x; });
}

std::optional<SceneStop> next_stop(const Scene& scene, const SceneStop& from, Way way, const TextMeasure& measure) {
  const bool across = way == Way::left || way == Way::right;
  const int sign = way == Way::right || way == Way::down ? 1 : -1;
  if (from.cell) {
    const Grid grid = grid_of(*from.mark);
    const Index at = across ? from.cell->column : from.cell->row, count = across ? grid.columns : grid.rows;
    if (at + sign >= 0 && at + sign < count)
      return at_cell(*from.mark, grid, across ? Cell{from.cell->row, at + sign} : Cell{at + sign, from.cell->column});
  }
  const Point here = from.rect.center();
  return cheapest(scene, here, measure, [&](const SceneStop& to) {
    constexpr double never = std::numeric_limits<double>::infinity();
    if (to.mark == from.mark || (to.mark->meaning.index() != 0 && to.mark->meaning == from.mark->meaning)) return never;
    const Point there = to.rect.center();
    const double ahead = sign * (across ? there.x - here.x : there.y - here.y);
    if (ahead < 0.5) return never;
    const Rect &a = from.rect, &b = to.rect;
    const double aside = across ? apart(a.y, a.bottom(), b.y, b.bottom()) : apart(a.x, a.right(), b.x, b.right());
    const double off = std::abs(across ? there.y - here.y : there.x - here.x);
    return ahead + 4 * aside + 0.1 * off;  // straight on before the corner of the eye
  });
}

std::optional<SceneStop> same_stop(const Scene& scene, const std::string& id, const std::optional<Cell>& cell,
                                   const Rect& rect, const TextMeasure& measure) {
  if (const Mark* mark = find(scene, id); mark && reachable(*mark)) {
    const Grid grid = grid_of(*mark);
    return grid.columns > 0 && cell ? at_cell(*mark, grid, *cell) : stop_near(*mark, rect.center(), measure);
  }
  return cheapest(scene, rect.center(), measure, [&](const SceneStop& s) {
    return std::hypot(s.rect.center().x - rect.center().x, s.rect.center().y - rect.center().y);
  });
}

}  // namespace headscope
