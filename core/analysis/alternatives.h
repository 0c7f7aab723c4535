#pragma once
// Different attention weights, same output (Brunner et al., On Identifiability in Transformers, 2020; Jain & Wallace,
// Attention is not Explanation, 2019). A head's output at a row is z = Σ_j α_j v_j. Weights α + δ with
//   Σ_j δ_j = 0,   Σ_j δ_j v_j = 0,   α + δ ≥ 0
// are attention too and give the same z: whenever a row sees more than d_head + 1 keys there are such δ. Among them
// this looks for those that take most weight away from one key, as a linear program:
//   minimise α'_key   over   α' ≥ 0,  Σ α' = Σ α,  Σ α'_j v_j = z,
// (Σ α = 1, less beside a learned sink, whose share stays)
// solved by an active-set method (Rosen's gradient projection, 1960), whose path from α to the end is the slider.
// `tolerance` > 0 also lets directions move in which the values hardly differ (singular values below tolerance × the
// largest): then the output changes a little, and by how much is told.

#include <stop_token>
#include <vector>

#include "core/trace/trace.h"

namespace headscope {

struct Alternatives {
  HeadId head = {};
  Index query = 0, key = 0;                  ///< the row, and the key that loses its weight
  std::vector<double> weights;               ///< (visible key) the model's own
  std::vector<std::vector<double>> corners;  ///< of the path, corners[0] = weights
  std::vector<double> lengths;               ///< total variation walked up to each corner
  Index free = 0;                            ///< dimension of the space of δ at the start
  Tensor values;                             ///< (visible key, d_head)

  /// A point on the path; 0 = the model's own weights, 1 = its end.
  std::vector<double> at(double share) const;
};

/// `key` < 0: the key with most weight. `trace` must have recorded maps and v. Throws Error on a row or a key that is
/// not there, and Cancelled.
Alternatives find_alternatives(const Trace& trace, HeadId head, Index query, Index key = -1, double tolerance = 1e-6,
                               std::stop_token stop = {});

/// How two rows of weights differ, and what that does to the output.
struct RowDifference {
  double variation = 0;   ///< ½ Σ |α − α'|: 0 = the same, 1 = nothing in common
  double divergence = 0;  ///< Jensen–Shannon, nats (at most ln 2)
  double output = 0;      ///< ‖z − z'‖ / ‖z‖
};
RowDifference row_difference(const Tensor& values, const std::vector<double>& before, const std::vector<double>& after);

/// For comparison: as much weight moved without looking at the values. The key gives it to the others in proportion to
/// theirs, as SetWeight does, until the total variation is `variation` (or nothing is left to give).
std::vector<double> naive_shift(const std::vector<double>& weights, Index key, double variation);

}  // namespace headscope
