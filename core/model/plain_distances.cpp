#include <algorithm>
#include <cmath>
#include <utility>

#include "core/model/plain_parts.h"

namespace headscope::plain {

namespace {
/// Of 2 · span rows those of the nearer span/2 on either side are distances; the others are ⌈ln⌉ of them.
Index row_of_distance(const DistanceConfig& own, Index before) {
  const Index sign = before < 0 ? -1 : 1, size = std::abs(before), near = own.span / 2;
  const auto far = [&](Index of) { return std::log(static_cast<double>(of) / static_cast<double>(near)); };
  Index bucket = size;
  if (own.max_distance > 0 && size > near)
    bucket =
        near + static_cast<Index>(std::ceil(far(size) / far(own.max_distance - 1) * static_cast<double>(near - 1)));
  return std::clamp<Index>(own.span + sign * bucket, 0, 2 * Index{own.span} - 1);
}
}  // namespace

Distances::Distances(const ModelConfig& c, const RawWeights& all, const RawLayer& w, const std::stop_token& stop) {
  if (!c.distances) return;
  const DistanceConfig& own = *c.distances;
  Table rows(all.distances.dim(0), all.distances.dim(1));
  for (Index row = 0; row < rows.rows; ++row)
    for (Index i = 0; i < rows.columns; ++i) rows.at(row, i) = number(all.distances.select(0, row), i);
  if (own.norm) normalize(c, c.norm, rows, 0, rows.columns, all.distance_gain, all.distance_bias);
  if (own.content_to_position)
    k = own.shared ? product(rows, w.k_weight, w.k_bias, stop)
                   : product(rows, w.distance_k_weight, w.distance_k_bias, stop);
  if (own.position_to_content)
    q = own.shared ? product(rows, w.q_weight, w.q_bias, stop)
                   : product(rows, w.distance_q_weight, w.distance_q_bias, stop);
}

double Distances::of(const ModelConfig& c, const Table& queries, Index query, const Table& keys, Index key,
                     Index first) const {
  if (!c.distances) return 0;
  const Index at = row_of_distance(*c.distances, query - key);
  double sum = 0;
  for (Index i = first; i < first + c.dims.d_head; ++i) {
    if (k.rows > 0) sum += queries.at(query, i) * k.at(at, i);
    if (q.rows > 0) sum += keys.at(key, i) * q.at(at, i);
  }
  return sum;
}

}  // namespace headscope::plain
