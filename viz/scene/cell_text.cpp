#include "viz/scene/cell_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/nth.h"
#include "viz/scene/text.h"

namespace headscope {

CellRange range_of(const Tensor& values, const std::vector<std::uint8_t>& masked) {
  CellRange out;
  for (Index r = 0; r < values.dim(0); ++r)
    for (Index c = 0; c < values.dim(1); ++c) {
      const double value = values.at(r, c);
      if (!masked.empty() && nth(masked, r * values.dim(1) + c)) {
        out.masked = true;
      } else if (!std::isfinite(value)) {
        out.missing = true;
      } else {
        out.low = out.any ? std::min(out.low, value) : value;
        out.high = out.any ? std::max(out.high, value) : value;
        out.any = true;
      }
    }
  return out;
}

ColorNorm norm_of(const CellRange& range, std::optional<double> low, std::optional<double> high, bool diverging) {
  ColorNorm norm{Scale::linear, 0, range.any ? range.high : 1};
  if (diverging || (range.any && range.low < 0)) {
    const double largest = std::max(std::abs(range.low), std::abs(range.high));
    norm.high = largest > 0 ? largest : 1;  // of zeros alone, or of nothing yet: still about 0
    norm.low = -norm.high;
  }
  norm.low = low.value_or(norm.low);
  norm.high = high.value_or(norm.high);
  if (!(norm.high > norm.low)) norm.high = norm.low + 1;
  return norm;
}

void add_cell_text(Scene& scene, const Heatmap& map, Cell cell, std::string text, const Font& font, const Style& style,
                   std::string id) {
  const Rect rect = map.cell(cell.row, cell.column);
  scene.add({Text{{rect.x + (rect.w - map.gap) / 2, rect.y + (rect.h - map.gap) / 2 + half_capital(font)},
                  std::move(text),
                  font,
                  readable_on(map.color(cell.row, cell.column), style.theme.dark_ink, style.theme.light_ink),
                  Anchor::middle,
                  0},
             std::move(id), ""});
}

}  // namespace headscope
