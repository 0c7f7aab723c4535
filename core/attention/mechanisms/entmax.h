#pragma once
// α-entmax of one row: the map from scores to shares that is softmax at α = 1 and the projection onto the simplex
// (sparsemax) at α = 2, with exact zeros for every α > 1.

#include <span>

namespace headscope::mechanism {

/// In place; −∞ gives 0, a row with no finite score becomes all zero. 1 ≤ alpha ≤ 2 … 4. α = 1 is softmax_row.
void entmax_row(std::span<float> row, double alpha);

}  // namespace headscope::mechanism
