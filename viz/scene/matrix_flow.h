#pragma once
// Matrices of a computation one after another, each with its title, formula, shape, own scale and colour bar, breaking
// into lines where the room ends: the steps of a mechanism, or two maps and their difference. Cells that have room for
// their number show it; rows and columns are named, every k-th where there is no room for all.

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
  std::vector<std::string> rows = {}, columns = {};  ///< what they are called; empty = nothing is written
  bool decimals = false;                             ///< in numbers that are whole, too
};

struct MatrixFlow {
  std::vector<FlowMatrix> matrices;
  double width = 900;  ///< room
  double side = 220;   ///< what the longest side of a matrix, its labels included, aims at
  bool arrows = true;  ///< between neighbours
};

/// What numbers of a matrix are written with: none where all are whole, else as many decimals as the largest leaves
/// room for: "0.40", "20.0", "−67".
int decimals_of(const FlowMatrix& matrix);
/// "0.40"; "0" for exactly 0.
std::string cell_number(double value, int decimals);

/// Titles are marks "title.<id>", matrices "<id>". A matrix with more rows or columns than pixels shrinks its cells
/// below one pixel.
Scene matrix_flow_scene(const MatrixFlow& flow, const Style& style);

}  // namespace headscope
