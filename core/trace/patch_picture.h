#pragma once
// What the keys of a vision transformer are patches of (Dosovitskiy et al., An Image is Worth 16x16 Words, 2021): a
// grid over a picture, row by row, after `leading` tokens that stand for no patch (CLS, registers).

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

/// A rectangle of pixels, [x0, x1) × [y0, y1); borders lie between pixels where patches are no whole number of them.
struct PixelBox {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool operator==(const PixelBox&) const = default;
};

struct PatchPicture {
  Index rows = 0, columns = 0;         ///< of the grid
  Index leading = 0;                   ///< keys before the first patch
  Index height = 0, width = 0;         ///< of the picture, pixels; 0 = a grid without a picture
  std::vector<std::uint8_t> rgb = {};  ///< row-major, 3 bytes a pixel

  Index keys() const { return leading + rows * columns; }
  /// The key of a patch. REQUIRES a patch inside the grid.
  Index key_of(Index row, Index column) const { return leading + row * columns + column; }
  /// The patch of a key, counted row by row; nullopt for leading keys and those outside.
  std::optional<Index> patch_of(Index key) const {
    if (key < leading || key >= keys()) return std::nullopt;
    return key - leading;
  }
  /// Size of what is drawn: the picture's, or a pixel for every patch.
  Index shown_width() const { return width > 0 ? width : columns; }
  Index shown_height() const { return height > 0 ? height : rows; }
  /// Which pixels a patch lies over: the picture is cut into equal rows and columns.
  PixelBox box(Index row, Index column) const {
    const auto w = static_cast<double>(shown_width()), h = static_cast<double>(shown_height());
    const auto r = static_cast<double>(row), c = static_cast<double>(column);
    const auto m = static_cast<double>(rows), n = static_cast<double>(columns);
    return {c * w / n, r * h / m, (c + 1) * w / n, (r + 1) * h / m};
  }
};

}  // namespace headscope
