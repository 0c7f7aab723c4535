#pragma once
// How a mechanism's result lies beside softmax attention on the same input: what every approximate one must report.

#include <string>

#include "core/attention/mechanism.h"

namespace headscope {

struct MechanismComparison {
  MechanismResult reference;  ///< softmax attention: weights and output
  Tensor difference;          ///< (n, m) this − softmax; undefined for a study
  double output_error = 0;    ///< ‖O − O_softmax‖ ÷ ‖O_softmax‖, Frobenius
  double entropy = 0;         ///< mean over rows in nats; NaN where a weight is negative
  double entropy_reference = 0;
  double top1 =
      0;  ///< share of rows whose largest weight lies on the same key, rows with one visible key left out; NaN = none
  int rank = -1, rank_reference = -1;      ///< singular values above 10⁻⁶ of the largest; −1 = not computed
  int rank90 = -1, rank90_reference = -1;  ///< that hold 90 % of the energy
  double negative = 0;                     ///< share of visible cells with a weight below 0
  double least_sum = 0, largest_sum = 0;   ///< of the rows' weights
};

/// `most_ranks`: maps with more rows or columns than that get no ranks (−1), which take n³.
MechanismComparison compare(const MechanismInput& in, const MechanismResult& result, Index most_ranks = 384);

/// One to three sentences on what to look for: the mechanism's own note, and what the comparison shows. True of these
/// numbers, not of the method at large.
std::string what_to_look_for(const Mechanism& mechanism, const MechanismInput& in, const MechanismValues& values,
                             const MechanismResult& result, const MechanismComparison& comparison);

}  // namespace headscope
