#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/nth.h"
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

/// Bao et al. 2022: rows down and columns across from the key's patch to the query's, and three for CLS.
Index way(const VisionConfig& v, Index query, Index key) {
  const Index rows = v.rows(), columns = v.columns(), ways = (2 * rows - 1) * (2 * columns - 1);
  if (query == 0) return key == 0 ? ways + 2 : ways;
  if (key == 0) return ways + 1;
  const Index down = (query - 1) / columns - (key - 1) / columns, across = (query - 1) % columns - (key - 1) % columns;
  return (down + rows - 1) * (2 * columns - 1) + across + columns - 1;
}

/// Raffel et al. 2020: the bucket of a key `ahead` positions ahead of its query.
Index bucket(const ModelConfig& c, Index ahead) {
  const Index buckets = c.causal ? c.position_buckets : c.position_buckets / 2, exact = buckets / 2,
              base = !c.causal && ahead > 0 ? buckets : 0,
              distance = c.causal ? std::max<Index>(-ahead, 0) : std::abs(ahead);
  if (distance < exact) return base + distance;
  const auto far = [&](Index of) { return std::log(static_cast<double>(of) / static_cast<double>(exact)); };
  const double share = far(distance) / far(c.position_distance) * static_cast<double>(buckets - exact);
  return base + std::min(buckets - 1, exact + static_cast<Index>(share));
}

/// The nearest number of 8 significant bits, bfloat16's; of two the even one.
double to_bfloat(double x) {
  int exponent = 0;
  const double whole = std::ldexp(std::frexp(x, &exponent), 8);
  return std::ldexp(std::nearbyint(whole), exponent - 8);
}
}  // namespace

double position_bias(const ModelConfig& c, const RawWeights& w, int layer, Index head, Index query, Index key) {
  if (c.has_buckets()) {
    const Tensor& table = c.buckets_by_layer ? nth(w.layers, layer).position_buckets : w.position_buckets;
    const bool places = c.vision && c.vision->place_biases;
    return number(table.select(0, places ? way(*c.vision, query, key) : bucket(c, key - query)), head);
  }
  if (c.position != PositionKind::alibi) return 0;
  const double slope = nth(c.alibi_slopes, head), unit = c.alibi_unit;
  if (unit > 0) return unit * to_bfloat(to_bfloat(slope / unit) * to_bfloat(static_cast<double>(key)));
  return -slope * static_cast<double>(std::abs(query - key));
}

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
