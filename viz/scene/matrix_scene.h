#pragma once
// A labelled matrix of numbers as a picture: layers × heads, layers × positions, heads × heads. Cells not known yet
// are flat and neutral; signed numbers come in diverging colours around zero; a colour bar stands below.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"

namespace headscope {

struct Matrix {
  Tensor values;                                          ///< (row, column); NaN = there is no such number …
  std::string missing_text = to_say("no value");          ///< … in these words
  std::vector<std::uint8_t> pending;                      ///< row-major, 1 = flat and neutral; empty = none is
  std::string pending_text = to_say("not computed yet");  ///< why they are
  std::vector<std::string> rows, columns;                 ///< labels; columns are not looked at when `tokens` is given
  std::shared_ptr<const Trace> tokens;                    ///< columns are the positions of this text
  std::string row_title, column_title;                    ///< "layer ↓", "head →"
  std::string unit;                 ///< what the numbers are, at the colour bar: "loss change, nats"
  std::optional<double> low, high;  ///< else 0 … largest, or symmetric about 0 when a number is negative
  bool diverging = false;           ///< symmetric about 0 even when no number is negative
  int digits = 2;                   ///< significant ones written in cells that have room; 0 = none
  std::vector<std::string> texts;   ///< row-major, written in the cells instead of numbers; may be empty
  double width = 400;               ///< room; the height follows, at most …
  double height = 400;              ///< … this
  double largest_cell = 64;         ///< no cell is wider
  double highest_row = 44;          ///< … or higher
  /// All of it inside width × height, its cells as wide as high: where there is less than a pixel for a number, several
  /// rows and columns share a cell, which shows the largest magnitude (Heatmap::row_bin, column_bin). Without `texts`.
  bool square = false;
  std::string provenance;  ///< of the whole matrix, for the tooltip and files
};

/// The heatmap is the mark "matrix"; label ids are "row.<i>", "column.<i>" or, of tokens, "label.key.<position>".
Scene matrix_scene(const Matrix& matrix, const Style& style);

/// Layers × heads with the numbers that are there: `value[layer * heads + head]`, fewer = the rest is pending.
Matrix head_matrix(int layers, int heads, std::span<const double> value);
/// The same of a model: `value` in the order of every_head(). What stands for no head stays flat and neutral, and so do
/// heads that have no number because their layer does not attend.
Matrix head_matrix(const ModelDims& dims, std::span<const double> value);

}  // namespace headscope
