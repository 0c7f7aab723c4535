#pragma once
// A matrix drawn cell by cell. Every cell is a flat rectangle in the colour of its own value: no interpolation
// anywhere. A masked cell takes the mask's neutral colour, a NaN the colour of missing data; neither is a colour of the
// map.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/nth.h"
#include "core/tensor/tensor.h"
#include "viz/color/color_norm.h"
#include "viz/color/colormap.h"
#include "viz/scene/geometry.h"

namespace headscope {

struct Heatmap {
  Rect rect;
  Tensor values;                       ///< (row, column)
  std::vector<std::uint8_t> masked;    ///< row-major, 1 = masked; empty = no cell is
  const Colormap* colormap = nullptr;  ///< one of colormaps()
  ColorNorm norm;
  std::vector<float> row_high;  ///< (row) largest value, for Scale::per_row; else empty
  Color masked_color, missing_color;
  double gap = 0;  ///< ground left free between neighbouring cells, except between two masked ones
  /// What cells stand for, which is what labels count: row r for first_row + r · row_bin and what follows to the next,
  /// column c for first_column + c · column_bin.
  Index first_row = 0, first_column = 0;
  int row_bin = 1, column_bin = 1;
  bool unfinished = false;  ///< finer cells are being computed: some show the maximum of a wider part until then

  Index rows() const { return values.dim(0); }
  Index columns() const { return values.dim(1); }
  bool is_masked(Index row, Index column) const {
    return !masked.empty() && nth(masked, row * columns() + column) != 0;
  }
  /// norm() of the cell; NaN where it is masked or missing.
  double unit(Index row, Index column) const;
  Color color(Index row, Index column) const;
  /// The whole cell, gap included.
  Rect cell(Index row, Index column) const;
  /// The row, or the column, that stands for a position; nullopt where it lies outside.
  std::optional<Index> row_of(Index position) const;
  std::optional<Index> column_of(Index position) const;
};

struct Cell {
  Index row = 0, column = 0;
  bool operator==(const Cell&) const = default;
};

/// The cell under a point; nullopt outside.
std::optional<Cell> cell_at(const Heatmap& map, Point point);

/// Largest finite unmasked value of every row, 0 where there is none: what per-row scaling divides by.
std::vector<float> row_maxima(const Tensor& values, const std::vector<std::uint8_t>& masked);

}  // namespace headscope
