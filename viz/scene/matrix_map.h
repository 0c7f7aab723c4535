#pragma once
// Any matrix as a map: cells, labels of rows and columns where they fit, numbers inside large cells, a colour bar. For
// what is not the attention of a trace: tables of positions, biases, masks, similarities.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "viz/scene/annotations.h"

namespace headscope {

struct MatrixMap {
  Tensor values;                                       ///< (row, column)
  std::vector<std::uint8_t> masked;                    ///< row-major, 1 = masked; empty = none is
  std::string title;                                   ///< above; "" = none
  std::string rows, columns;                           ///< what they are: "position", "key"; "" = not said
  std::vector<std::string> row_labels, column_labels;  ///< empty = numbers
  Index first_row = 0, first_column = 0;               ///< added to those numbers
  std::string bar = to_say("value");                   ///< of the colour bar
  std::optional<double> low, high;                     ///< else from the values; signed ones symmetric about 0
  bool colour_bar = true, numbers = true;
  bool mask_legend = true;  ///< what masked cells look like, beside the bar; off where they only part others
  bool sequential = false;  ///< from the lowest to the highest value, also where some are negative: scores, of which
                            ///< only differences count
  double width = 400, height = 400;  ///< at most, everything included
  bool square = true;                ///< cells are squares; else they fill the room
  std::optional<Cell> marked;        ///< framed
  std::string provenance;            ///< tooltip of the map
};

/// A mask: cells that are seen, in one quiet shade, beside cells that are hidden. `hidden`: row-major, 1 = not seen.
MatrixMap mask_map(Index tokens, std::vector<std::uint8_t> hidden);

/// The map is named "map", a frame "marked". Matrices longer than pixels are drawn by every k-th row and column, and
/// say so.
Scene matrix_map_scene(const MatrixMap& matrix, const Style& style);

}  // namespace headscope
