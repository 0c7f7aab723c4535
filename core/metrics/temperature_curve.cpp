#include "core/metrics/temperature_curve.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/special_values.h"

namespace headscope {

namespace {

/// −Σ p ln p over the keys of softmax(scores / τ), where the largest score is 0; `sink` is one score more, which is no
/// key. Masked scores are left out by the caller.
double entropy_at(std::span<const double> scores, double sink, double tau) {
  double z = 0, slope = 0;
  for (const double score : scores) {
    const double scaled = score / tau, weight = std::exp(scaled);
    z += weight;
    if (weight > 0) slope += weight * scaled;
  }
  const double all = z + std::exp(sink / tau);
  return std::max(0.0, z / all * std::log(all) - slope / all);
}
}  // namespace

namespace {
/// What stands beside the scores of a row: where these are logarithms of weights, that of what is left of 1.
double sink_of(const AttentionMap& map, Index query, std::span<const double> scores) {
  const double own = map.rule() ? static_cast<double>(map.rule()->sink(map.place().offset + query)) : -infinity;
  if (own == -infinity || map.is_factored()) return own;
  double kept = 0;
  for (const double score : scores) kept += std::exp(score);
  return kept < 1 ? std::log(1 - kept) : -infinity;
}
}  // namespace

void row_scores(const AttentionMap& map, Index query, std::span<double> out) {
  assert(static_cast<Index>(out.size()) == map.n_key());
  std::ranges::fill(out, -infinity);
  if (!map.is_factored()) {
    std::vector<float> row(out.size());
    map.row(query, row);
    for (std::size_t j = 0; j < out.size(); ++j)
      out[j] = row[j] > 0 ? std::log(static_cast<double>(row[j])) : -infinity;
    return;
  }
  const Index position = map.place().offset + query;
  const KeyRange keys = map.rule() ? map.rule()->keys(position, map.n_key()) : KeyRange{0, map.n_key()};
  std::vector<float> scores;
  for (Index j = keys.begin; j < keys.end; ++j) {
    double dot = 0;
    for (Index c = 0; c < map.q().dim(1); ++c) dot += static_cast<double>(map.q().at(query, c)) * map.k().at(j, c);
    scores.push_back(static_cast<float>(dot * static_cast<double>(map.scale())));
  }
  // A rule may multiply as well as add, so it is given the scores themselves.
  if (map.rule() && !map.rule()->plain()) map.rule()->apply(position, keys.begin, scores);
  std::ranges::copy(scores, out.begin() + keys.begin);
}

TemperatureCurve temperature_curve(const AttentionMap& map, std::span<const double> taus, Index most_rows,
                                   std::stop_token stop) {
  TemperatureCurve curve;
  curve.tau.assign(taus.begin(), taus.end());
  std::vector<double> sums(taus.size(), 0.0);
  const Index used = std::clamp<Index>(most_rows, 1, map.n_query());
  std::vector<double> scores(static_cast<std::size_t>(map.n_key())), visible;
  for (Index r = 0; r < used; ++r) {
    if (stop.stop_requested()) throw Cancelled();
    row_scores(map, (r + 1) * map.n_query() / used - 1, scores);
    const double most = *std::ranges::max_element(scores);
    if (most == -infinity) continue;  // a row without keys has no distribution
    visible.clear();
    for (const double score : scores)
      if (score > -infinity) visible.push_back(score - most);
    const double sink = sink_of(map, (r + 1) * map.n_query() / used - 1, scores) - most;
    for (std::size_t t = 0; t < taus.size(); ++t) sums[t] += entropy_at(visible, sink, taus[t]);
    ++curve.rows;
  }
  for (const double sum : sums)
    curve.entropy.push_back(curve.rows > 0 ? sum / static_cast<double>(curve.rows)
                                           : std::numeric_limits<double>::quiet_NaN());
  return curve;
}

std::vector<double> temperatures(double low, double high, int count) {
  assert(low > 0 && high > low && count >= 2);
  std::vector<double> taus;
  for (int i = 0; i < count; ++i) taus.push_back(low * std::pow(high / low, static_cast<double>(i) / (count - 1)));
  taus.back() = high;
  return taus;
}

}  // namespace headscope
