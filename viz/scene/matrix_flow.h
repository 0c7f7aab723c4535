#pragma once
// Matrices of a computation one after another, each with its title, formula, shape, own scale and colour bar, breaking
// into lines where the room ends: the steps of a mechanism, or two maps and their difference.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viz/scene/annotations.h"
#include "viz/scene/scene.h"

namespace headscope {

struct FlowMatrix {
  std::string id;  ///< of the heatmap's mark
  std::string title, formula;
  Tensor values;                     ///< (row, column)
  std::vector<std::uint8_t> masked;  ///< row-major, 1 = hidden; empty = none
  std::optional<double> low, high;   ///< else 0 … largest, or symmetric about 0 when a number is negative
  std::string unit;                  ///< what the numbers are, at the colour bar
  bool folded = false;               ///< title and shape alone
  bool new_line = false;             ///< begins a line, whatever room is left in the one before
};

struct MatrixFlow {
  std::vector<FlowMatrix> matrices;
  double width = 900;  ///< room
  double side = 220;   ///< what the longest side of a matrix aims at
  bool arrows = true;  ///< between neighbours
};

/// Titles are marks "title.<id>", matrices "<id>". A matrix with more rows or columns than pixels shrinks its cells
/// below one pixel.
Scene matrix_flow_scene(const MatrixFlow& flow, const Style& style);

}  // namespace headscope
