#pragma once
// Where the weight of one head goes: per row, per column, per distance. Building blocks of the metrics, and what the
// views draw beside a map. Distances are query position − key position: 0 the token itself, 1 the one before, negative
// ahead.

#include <vector>

#include "core/trace/attention_map.h"

namespace headscope {

/// Σ over keys for every query: 1 for probabilities, the gain of a row for effective maps. Reads the whole map.
std::vector<double> row_mass(const AttentionMap& map);
/// Σ over queries for every key: how much attention a token receives. From the statistics.
const std::vector<double>& column_mass(const AttentionMap& map);

/// How many query rows have a key at this distance inside the text.
Index rows_at_distance(const AttentionMap& map, Index distance);
/// Mean over those rows of the weight at this distance; NaN when there are none.
double weight_at_distance(const AttentionMap& map, Index distance);

struct BestOffset {
  Index distance = 0;
  double weight = 0;  ///< mean over the rows that have a key there; NaN when no distance qualifies
  Index tried = 0;    ///< distances that took part
};
/// The distance besides 0 (self), 1 (previous token) and −1 (next token) that gets most weight. Only distances that at
/// least half of the rows and at least two can look at take part: a single far cell says nothing about an offset. Of
/// equals the nearest, back before ahead.
BestOffset best_offset(const AttentionMap& map);

}  // namespace headscope
