#include "core/analysis/sinks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/analysis/need.h"
#include "core/analysis/weighted_maps.h"
#include "core/base/median.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/metrics/even_head.h"
#include "core/metrics/metric.h"

namespace headscope {

namespace {

double median_after_first(const std::vector<float>& norms) {
  return median(std::vector<float>(norms.begin() + 1, norms.end()));
}

double mean_after_first(const std::vector<float>& rows) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (!std::isnan(rows[i])) sum += static_cast<double>(rows[i]), ++count;
  return count ? sum / count : nan;
}

SinkHead read_head(const Trace& trace, const ModelWeights& weights, const AttentionMap& map) {
  SinkHead out;
  out.id = map.id();
  if (!trace.model.dims.attends(map.layer())) {
    for (double* each : {&out.mass, &out.chance, &out.value_norm, &out.value_median, &out.output_norm,
                         &out.output_median, &out.carried, &out.entropy, &out.entropy_without})
      *each = nan;
    return out;
  }
  const std::vector<float> values = key_norms(trace, weights, out.id, Weighting::value),
                           outputs = key_norms(trace, weights, out.id, Weighting::output);
  const Tensor offered = offered_norms(trace, weights, out.id, Weighting::output);
  out.value_norm = static_cast<double>(values[0]);
  out.value_median = median_after_first(values);
  out.output_norm = static_cast<double>(outputs[0]);
  out.output_median = median_after_first(outputs);
  out.entropy = mean_after_first(map.stats().entropy);
  out.entropy_without = mean_after_first(map.stats().entropy_without_first);
  const AttentionMap even = even_head(map, TokenLinks{});
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  Index rows = 0, carrying = 0;
  for (Index i = 1; i < map.n_query(); ++i, ++rows) {
    map.row(i, row);
    out.mass += static_cast<double>(row[0]);
    out.chance += static_cast<double>(even.weight(i, 0));
    if (map.rule() && std::isfinite(map.rule()->sink(map.place().offset + i)))
      out.learned += 1 - std::accumulate(row.begin(), row.end(), 0.0);
    const auto carries = [&](Index j) {
      return static_cast<double>(nth(row, j) * offered.at(offered.dim(0) == 1 ? 0 : i, j));
    };
    double all = 0;
    for (Index j = 0; j < map.n_key(); ++j) all += carries(j);
    if (all <= 0) continue;
    out.carried += carries(0) / all;
    ++carrying;
  }
  out.mass /= static_cast<double>(rows);
  out.chance /= static_cast<double>(rows);
  out.learned /= static_cast<double>(rows);
  out.carried = carrying ? out.carried / static_cast<double>(carrying) : nan;
  if (!has_probabilities(map)) out.mass = out.carried = out.entropy = out.entropy_without = nan;
  return out;
}

void add_shape(const AttentionMap& map, bool ahead, std::vector<double>& weight, std::vector<double>& even) {
  const auto parts = static_cast<Index>(weight.size());
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  for (Index i = map.n_query() / 2; i < map.n_query(); ++i) {
    const Index seen = ahead ? map.n_key() : i + 1;
    if (seen < parts) continue;  // fewer keys than parts
    map.row(i, row);
    for (Index j = 0; j < seen; ++j) {
      const auto part = static_cast<std::size_t>(j * parts / seen);
      weight[part] += static_cast<double>(nth(row, j));
      even[part] += 1 / static_cast<double>(seen);
    }
  }
}

std::vector<double> residual_norms(const Trace& trace, int layer) {
  const Tensor& residual = need(trace, {SiteKind::resid_post, layer});
  std::vector<double> norms;
  for (Index i = 0; i < residual.dim(0); ++i) {
    double square = 0;
    for (Index d = 0; d < residual.dim(1); ++d) square += std::pow(static_cast<double>(residual.at(i, d)), 2);
    norms.push_back(std::sqrt(square));
  }
  return norms;
}

SinkLayer read_layer(const Trace& trace, const ModelWeights& weights, int layer, int parts) {
  const auto n = static_cast<Index>(trace.tokens.size());
  const int heads = trace.model.dims.heads;
  if (!trace.model.dims.attends(layer)) {  // no weights that add up to 1, no values
    SinkLayer out;
    out.received.assign(static_cast<std::size_t>(n), nan);
    out.value_norm = out.received;
    out.density.assign(static_cast<std::size_t>(parts), nan);
    out.v_depth = nan;
    out.residual = residual_norms(trace, layer);
    return out;
  }
  const bool ahead = trace.sees_later_keys();
  SinkLayer out;
  out.received.assign(static_cast<std::size_t>(n), 0);
  out.value_norm = out.received;
  std::vector<double> weight(static_cast<std::size_t>(parts), 0), even = weight;
  for (int head = 0; head < heads; ++head) {
    const AttentionMap& map = trace.map({layer, head});
    const std::vector<float> norms = key_norms(trace, weights, {layer, head}, Weighting::value);
    for (std::size_t j = 0; j < norms.size(); ++j) out.value_norm[j] += static_cast<double>(norms[j]) / heads;
    add_shape(map, ahead, weight, even);
    std::vector<float> row(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) {
      map.row(i, row);
      for (Index j = 0; j < (ahead ? n : i); ++j)
        if (j != i)
          nth(out.received, j) +=
              static_cast<double>(nth(row, j)) / heads / static_cast<double>(n - 1 - (ahead ? 0 : j));
    }
  }
  if (!ahead) out.received.back() = nan;
  out.residual = residual_norms(trace, layer);
  for (std::size_t part = 0; part < weight.size(); ++part)
    out.density.push_back(even[part] > 0 ? weight[part] / even[part] : nan);
  double middle = 0;
  const std::size_t from = weight.size() / 4, to = weight.size() - from;
  for (std::size_t part = from; part < to; ++part) middle += out.density[part] / static_cast<double>(to - from);
  out.v_depth = middle > 0 ? std::min(out.density.front(), out.density.back()) / middle : nan;
  return out;
}
}  // namespace

SinkReport read_sinks(const Trace& trace, const ModelWeights& weights, int parts) {
  if (trace.tokens.size() < 2)
    throw Error("sinks", "a text of two tokens or more", std::to_string(trace.tokens.size()));
  if (!trace.model.dims.any_attends()) need(trace, {SiteKind::v, 0});  // throws: there are none
  SinkReport out;
  out.ahead = trace.sees_later_keys();
  for (const AttentionMap& map : trace.maps) out.heads.push_back(read_head(trace, weights, map));
  for (int layer = 0; layer < trace.model.dims.layers; ++layer)
    out.layers.push_back(read_layer(trace, weights, layer, parts));
  return out;
}

bool MassiveRule::met(const HiddenActivation& a) const {
  return a.ratio >= ratio && std::abs(static_cast<double>(a.value)) > magnitude;
}

MassiveActivations massive_activations(const Trace& trace, const MassiveRule& rule) {
  MassiveActivations out;
  out.rule = rule;
  for (int layer = 0; layer < trace.model.dims.layers; ++layer) {
    const Tensor& x = need(trace, {SiteKind::resid_post, layer});
    std::vector<float> sizes;
    for (Index i = 0; i < x.dim(0); ++i)
      for (Index d = 0; d < x.dim(1); ++d) sizes.push_back(std::abs(x.at(i, d)));
    MassiveLayer& line = out.layers.emplace_back();
    line.median = median(std::move(sizes));
    for (Index i = 0; i < x.dim(0); ++i)
      for (Index d = 0; d < x.dim(1); ++d) {
        const HiddenActivation here{layer, i, d, x.at(i, d), std::abs(static_cast<double>(x.at(i, d))) / line.median};
        if (here.ratio > line.largest.ratio) line.largest = here;
        line.count_by_sun += massive_by_sun.met(here);
        if (!rule.met(here)) continue;
        ++line.count;
        out.found.push_back(here);
      }
  }
  std::ranges::stable_sort(out.found, std::ranges::greater{}, &HiddenActivation::ratio);
  return out;
}

}  // namespace headscope
