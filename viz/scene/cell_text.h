#pragma once
// What the cells of any heatmap share: the range of their numbers, and words written in their middle.

#include <optional>
#include <string>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

/// Of the cells that are neither masked nor without a number.
struct CellRange {
  double low = 0, high = 0;
  bool any = false, masked = false, missing = false;
};
CellRange range_of(const Tensor& values, const std::vector<std::uint8_t>& masked);

/// 0 … the highest, or symmetric about 0 where a number is negative or `diverging`; `low` and `high` where given.
ColorNorm norm_of(const CellRange& range, std::optional<double> low, std::optional<double> high,
                  bool diverging = false);

/// In the middle of the cell, in the ink that can be read on it.
void add_cell_text(Scene& scene, const Heatmap& map, Cell cell, std::string text, const Font& font, const Style& style,
                   std::string id = "");

}  // namespace headscope
