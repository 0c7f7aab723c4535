#include "core/analysis/weighted_maps.h"

#include <cmath>
#include <limits>

#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/tensor/matrices.h"

namespace headscope {

namespace {
/// The weights with column j multiplied by norms[j].
Tensor scaled(const AttentionMap& map, const std::vector<float>& norms) {
  Tensor out = map.to_dense();
  for (Index i = 0; i < out.dim(0); ++i)
    for (Index j = 0; j < out.dim(1); ++j) out.ref(i, j) *= nth(norms, j);
  return out;
}

double share_of_first(const Tensor& weights) {
  double first = 0, all = 0;
  for (Index i = 1; i < weights.dim(0); ++i)
    for (Index j = 0; j < weights.dim(1); ++j) {
      all += static_cast<double>(weights.at(i, j));
      if (j == 0) first += static_cast<double>(weights.at(i, j));
    }
  return all > 0 ? first / all : std::numeric_limits<double>::quiet_NaN();
}

Index strongest(const Tensor& weights, Index row) {
  Index best = 0;
  for (Index j = 1; j < weights.dim(1); ++j)
    if (weights.at(row, j) > weights.at(row, best)) best = j;
  return best;
}
}  // namespace

std::string_view name(Weighting weighting) {
  constexpr std::string_view names[] = {"attention", "value", "output"};
  return nth(names, weighting);
}

std::string_view formula(Weighting weighting) {
  constexpr std::string_view formulas[] = {"α", "α ‖v‖", "‖α v W_O‖"};
  return nth(formulas, weighting);
}

std::vector<float> key_norms(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting) {
  const AttentionMap& map = trace.map(head);
  std::vector<float> norms(static_cast<std::size_t>(map.n_key()), 1.0f);
  if (weighting == Weighting::attention) return norms;
  const Tensor& v = need(trace, {SiteKind::v, head.layer});
  const RowMajor<double> values = matrix_of(v.select(1, map.place().kv_head));  // (key, d_head)
  const HeadWeights& w = nth(nth(weights.blocks, head.layer).heads, head.head);
  const Eigen::VectorXd lengths = weighting == Weighting::value
                                      ? Eigen::VectorXd(values.rowwise().norm())
                                      : Eigen::VectorXd((values * matrix_of(w.o)).rowwise().norm());
  for (std::size_t j = 0; j < norms.size(); ++j) norms[j] = static_cast<float>(lengths(static_cast<Index>(j)));
  return norms;
}

AttentionMap weighted_map(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting) {
  const AttentionMap& map = trace.map(head);
  if (weighting == Weighting::attention) return map;
  Tensor cells = scaled(map, key_norms(trace, weights, head, weighting));
  AttentionMap::Place place = map.place();
  place.kind = MapKind::effective;
  const auto stats = stats_of_weights(cells, nullptr, place.offset);
  // The rule of the map itself, kept alive by a copy of the map.
  const auto owner = std::make_shared<AttentionMap>(map);
  const std::shared_ptr<const AttentionRule> rule(owner, owner->rule());
  return AttentionMap::dense(place, std::move(cells), map.rule() ? rule : nullptr, stats);
}

std::vector<WeightedHead> weighted_heads(const Trace& trace, const ModelWeights& weights) {
  std::vector<WeightedHead> out;
  for (const AttentionMap& map : trace.maps) {
    WeightedHead& head = out.emplace_back();
    head.id = map.id();
    if (trace.model.dims.hybrid() && !trace.model.dims.attends(map.layer())) {  // which has no values
      for (double* each : {&head.first_attention, &head.first_value, &head.first_output, &head.same_top})
        *each = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    const Tensor plain = map.to_dense();
    const Tensor value = scaled(map, key_norms(trace, weights, map.id(), Weighting::value));
    const Tensor output = scaled(map, key_norms(trace, weights, map.id(), Weighting::output));
    head.first_attention = share_of_first(plain);
    head.first_value = share_of_first(value);
    head.first_output = share_of_first(output);
    Index same = 0;
    for (Index i = 0; i < plain.dim(0); ++i) same += strongest(plain, i) == strongest(output, i);
    head.same_top = static_cast<double>(same) / static_cast<double>(plain.dim(0));
  }
  return out;
}

}  // namespace headscope
