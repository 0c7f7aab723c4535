#include "viz/scene/heatmap.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/nth.h"

namespace headscope {

double Heatmap::unit(Index row, Index column) const {
  if (is_masked(row, column)) return std::numeric_limits<double>::quiet_NaN();
  return norm(values.at(row, column), row_high.empty() ? 1.0 : nth(row_high, row));
}

Color Heatmap::color(Index row, Index column) const {
  if (is_masked(row, column)) return masked_color;
  const double t = unit(row, column);
  return std::isnan(t) ? missing_color : colormap->at(t);
}

std::optional<Index> Heatmap::row_of(Index position) const {
  const Index row = (position - first_row) / row_bin;
  return position >= first_row && row < rows() ? std::optional(row) : std::nullopt;
}

std::optional<Index> Heatmap::column_of(Index position) const {
  const Index column = (position - first_column) / column_bin;
  return position >= first_column && column < columns() ? std::optional(column) : std::nullopt;
}

Rect Heatmap::cell(Index row, Index column) const {
  const double w = rect.w / static_cast<double>(columns()), h = rect.h / static_cast<double>(rows());
  return {rect.x + w * static_cast<double>(column), rect.y + h * static_cast<double>(row), w, h};
}

std::optional<Cell> cell_at(const Heatmap& map, Point point) {
  if (!map.rect.contains(point)) return std::nullopt;
  const auto column = static_cast<Index>((point.x - map.rect.x) / map.rect.w * static_cast<double>(map.columns()));
  const auto row = static_cast<Index>((point.y - map.rect.y) / map.rect.h * static_cast<double>(map.rows()));
  return Cell{std::min(row, map.rows() - 1), std::min(column, map.columns() - 1)};
}

std::vector<float> row_maxima(const Tensor& values, const std::vector<std::uint8_t>& masked) {
  const Index rows = values.dim(0), columns = values.dim(1);
  std::vector<float> out(static_cast<std::size_t>(rows), 0.f);
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) {
      const float v = values.at(r, c);
      const bool hidden = !masked.empty() && nth(masked, r * columns + c) != 0;
      float& high = nth(out, r);
      if (!hidden && std::isfinite(v) && v > high) high = v;
    }
  return out;
}

}  // namespace headscope
