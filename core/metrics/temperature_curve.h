#pragma once
// How a head's entropy follows the softmax temperature: the same scores, divided by τ, through the softmax again.

#include <span>
#include <stop_token>
#include <vector>

#include "core/trace/attention_map.h"

namespace headscope {

struct TemperatureCurve {
  std::vector<double> tau;
  std::vector<double> entropy;  ///< mean over the rows used, in nats; NaN when no row sees a key
  Index rows = 0;               ///< how many rows were used
};

/// Mean row entropy of softmax(scores / τ) for every τ > 0, where τ = 1 is the map as it is. A factored map gives its
/// scores from q·k, so the curve is exact; a dense one from ln p, which differs from the scores by a constant of the
/// row that the softmax takes away again (but a weight that underflowed to 0 stays 0). `most_rows` evenly spaced rows
/// stand for a longer map, the last among them. Costs rows × keys exponentials for each τ. Throws Cancelled.
TemperatureCurve temperature_curve(const AttentionMap& map, std::span<const double> taus, Index most_rows = 256,
                                   std::stop_token stop = {});

/// `count` ≥ 2 temperatures from `low` to `high`, evenly spaced on a logarithmic axis, both ends exact.
std::vector<double> temperatures(double low, double high, int count);

/// The biased scores of one row, −infinity where masked: what softmax(scores) makes the row's weights of. For a dense
/// map ln p. `out.size()` == n_key.
void row_scores(const AttentionMap& map, Index query, std::span<double> out);

}  // namespace headscope
