#pragma once
// What BEiT adds to scores (Bao et al., BEiT: BERT Pre-Training of Image Transformers, 2022): a learned number for
// every way from one patch of a picture to another, so many rows down and so many columns to the right; and one each
// for CLS looking at a patch, for a patch looking at CLS, and for CLS at itself.

#include <vector>

#include "core/attention/rule_edits.h"

namespace headscope {

/// How many numbers that are: (2 · rows − 1)(2 · columns − 1) + 3.
constexpr Index place_biases(Index rows, Index columns) {
  return (2 * rows - 1) * (2 * columns - 1) + 3;
}
/// Which of them a cell gains. Position 0 is CLS, patches stand behind it row by row. REQUIRES both ≤ rows · columns.
Index place_bias(Index query, Index key, Index rows, Index columns);

/// `base` with bias[place_bias(query, key)] added. REQUIRES bias.size() = place_biases(rows, columns).
RulePtr place_rule(RulePtr base, std::vector<float> bias, Index rows, Index columns);

}  // namespace headscope
