#include "core/metrics/mass.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/nth.h"
#include "core/metrics/even_head.h"

namespace headscope {

std::vector<double> row_mass(const AttentionMap& map) {
  std::vector<double> mass;
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  for (Index query = 0; query < map.n_query(); ++query) {
    map.row(query, row);
    double sum = 0;
    for (const float weight : row) sum += static_cast<double>(weight);
    mass.push_back(sum);
  }
  return mass;
}

const std::vector<double>& column_mass(const AttentionMap& map) {
  return map.stats().column_mass;
}

Index rows_at_distance(const AttentionMap& map, Index distance) {
  // Query row r looks at key offset + r − distance, which must lie in [0, n_key).
  const Index first = std::max<Index>(0, distance - map.place().offset);
  const Index last = std::min(map.n_query() - 1, map.n_key() - 1 + distance - map.place().offset);
  return std::max<Index>(0, last - first + 1);
}

double weight_at_distance(const AttentionMap& map, Index distance) {
  const Index rows = rows_at_distance(map, distance);
  if (rows == 0) return std::numeric_limits<double>::quiet_NaN();
  const Index entry = distance + map.n_key() - 1 - map.place().offset;
  return nth(map.stats().distance_mass, entry) / static_cast<double>(rows);
}

BestOffset best_offset(const AttentionMap& map) {
  const Index n_query = map.n_query(), n_key = map.n_key(), offset = map.place().offset;
  BestOffset best{0, std::numeric_limits<double>::quiet_NaN(), 0};
  if (n_query == 0 || n_key == 0) return best;
  // How many rows see a key at each distance: a step up where a row's range of distances begins, one down after its
  // end.
  std::vector<Index> seeing(static_cast<std::size_t>(n_query + n_key));
  for (Index query = 0; query < n_query; ++query) {
    const KeyRange keys = visible_range(map, query);
    if (keys.size() <= 0) continue;
    ++nth(seeing, query + n_key - keys.end);
    --nth(seeing, query + n_key - keys.begin);
  }
  std::partial_sum(seeing.begin(), seeing.end(), seeing.begin());
  const auto consider = [&](Index distance) {
    const Index rows = nth(seeing, distance + n_key - 1 - offset);
    if (rows < 2 || 2 * rows < n_query) return;
    const double weight = weight_at_distance(map, distance);
    ++best.tried;
    if (std::isnan(best.weight) || weight > best.weight) best = {distance, weight, best.tried};
  };
  // Backwards before ahead, near before far: of equals the first stays.
  for (Index distance = std::max<Index>(2, offset - n_key + 1); distance < offset + n_query; ++distance)
    consider(distance);
  for (Index distance = -2; distance > offset - n_key; --distance) consider(distance);
  return best;
}

}  // namespace headscope
