#include "core/analysis/weighted_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/tensor/decompositions.h"
#include "core/tensor/matrices.h"

namespace headscope {

namespace {
/// The weights times norms, (query, key) or one row for all queries.
Tensor scaled(const AttentionMap& map, const Tensor& norms) {
  Tensor out = map.to_dense();
  const bool one = norms.dim(0) == 1;
  for (Index i = 0; i < out.dim(0); ++i)
    for (Index j = 0; j < out.dim(1); ++j) out.ref(i, j) *= norms.at(one ? 0 : i, j);
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

/// The gains of a norm of all that heads put out, for this one.
Eigen::VectorXd gains_of(const NormWeights& norm, const Tensor& o, int head) {
  const Index width = o.dim(0);
  return vector_of(norm.gain.slice(0, head * width, (head + 1) * width));
}

/// What such a norm, with steps if the model rounds, multiplies a row by: the best one number, of z ∘ gains and what
/// the output matrix reads.
double norm_of_row(const Trace& trace, const NormWeights& norm, int layer, Index query) {
  const Tensor z = need(trace, {SiteKind::z, layer}).select(0, query).packed(),
               read = need(trace, {SiteKind::z_gated, layer}).select(0, query).packed();
  double both = 0, square = 0;
  for (Index i = 0; i < z.size(); ++i) {
    const double gained = static_cast<double>(z.data()[i]) * static_cast<double>(norm.gain.at(i));
    both += gained * static_cast<double>(read.data()[i]);
    square += gained * gained;
  }
  return square > 0 ? both / square : 0;
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

BehindHeads behind_heads(const ModelConfig& config) {
  return config.z_norm ? BehindHeads::norm : config.output_gate ? BehindHeads::gate : BehindHeads::nothing;
}

std::string_view formula(Weighting weighting, BehindHeads behind) {
  constexpr std::string_view formulas[] = {"α", "α ‖v‖"},
                             outputs[] = {"‖α v W_O‖", "‖α (v ∘ σ(g)) W_O‖", "‖α (v ∘ γ) W_O‖ ÷ rms(z)"};
  return weighting == Weighting::output ? nth(outputs, behind) : nth(formulas, weighting);
}

std::set<SiteKind> weighting_sites(const ModelConfig& config) {
  std::set<SiteKind> sites{SiteKind::v};
  if (config.output_gate) sites.insert(SiteKind::attn_gate);
  if (config.z_norm) sites.insert({SiteKind::z, SiteKind::z_gated});
  return sites;
}

Tensor offered_norms(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting) {
  const AttentionMap& map = trace.map(head);
  if (weighting == Weighting::attention) return Tensor::full({1, map.n_key()}, 1.0f);
  const Tensor& v = need(trace, {SiteKind::v, head.layer});
  const RowMajor<double> values = matrix_of(v.select(1, map.place().kv_head));  // (key, d_head)
  const BlockWeights& block = nth(weights.blocks, head.layer);
  RowMajor<double> o = matrix_of(nth(block.heads, head.head).o);  // (d_head, d_model)
  const bool gated = block.z_gate.defined() && weighting == Weighting::output,
             normed = block.z_norm.gain.defined() && weighting == Weighting::output;
  Tensor norms = Tensor::uninitialized({gated || normed ? map.n_query() : 1, map.n_key()});
  const auto put = [&](Index row, const Eigen::VectorXd& lengths) {
    for (Index j = 0; j < norms.dim(1); ++j) norms.ref(row, j) = static_cast<float>(lengths(j));
  };
  if (normed) {
    o = gains_of(block.z_norm, nth(block.heads, head.head).o, head.head).asDiagonal() * o;
    const Eigen::VectorXd lengths = (values * o).rowwise().norm();
    for (Index i = 0; i < norms.dim(0); ++i) put(i, norm_of_row(trace, block.z_norm, head.layer, i) * lengths);
    return norms;
  }
  if (!gated) {
    put(0, weighting == Weighting::value ? Eigen::VectorXd(values.rowwise().norm())
                                         : Eigen::VectorXd((values * o).rowwise().norm()));
    return norms;
  }
  const RowMajor<double> gate = matrix_of(need(trace, {SiteKind::attn_gate, head.layer}).select(1, head.head));
  // ‖x W_O‖ = ‖x R‖ with R Rᵀ = W_O W_Oᵀ, which is small.
  const SymmetricEigen parts = symmetric_eigen(o * o.transpose());
  const Eigen::MatrixXd root = parts.vectors * parts.values.cwiseMax(0.0).cwiseSqrt().asDiagonal();
  for (Index i = 0; i < norms.dim(0); ++i) {
    const Eigen::VectorXd open = 1 / (1 + (-gate.row(i).transpose().array()).exp());
    put(i, (values * (open.asDiagonal() * root)).rowwise().norm());
  }
  return norms;
}

double offered_norm(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting, Index query,
                    Index key) {
  if (weighting == Weighting::attention) return 1;
  const Tensor& v = need(trace, {SiteKind::v, head.layer});
  Eigen::VectorXd value = vector_of(v.select(0, key).select(0, trace.map(head).place().kv_head));
  if (weighting == Weighting::value) return value.norm();
  const BlockWeights& block = nth(weights.blocks, head.layer);
  if (block.z_gate.defined()) {
    const Eigen::VectorXd gate =
        vector_of(need(trace, {SiteKind::attn_gate, head.layer}).select(0, query).select(0, head.head));
    value.array() /= 1 + (-gate.array()).exp();
  }
  const Tensor& o = nth(block.heads, head.head).o;
  if (!block.z_norm.gain.defined()) return (matrix_of(o).transpose() * value).norm();
  value.array() *= gains_of(block.z_norm, o, head.head).array();
  return norm_of_row(trace, block.z_norm, head.layer, query) * (matrix_of(o).transpose() * value).norm();
}

std::vector<float> key_norms(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting) {
  const Tensor norms = offered_norms(trace, weights, head, weighting);
  const Index offset = trace.map(head).place().offset;
  const bool later = trace.sees_later_keys() || norms.dim(0) == 1;
  std::vector<float> out;
  for (Index j = 0; j < norms.dim(1); ++j) {
    double sum = 0;
    const Index first = later ? 0 : std::min(std::max<Index>(j - offset, 0), norms.dim(0) - 1);
    for (Index i = first; i < norms.dim(0); ++i) sum += static_cast<double>(norms.at(i, j));
    out.push_back(static_cast<float>(sum / static_cast<double>(norms.dim(0) - first)));
  }
  return out;
}

AttentionMap weighted_map(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting) {
  const AttentionMap& map = trace.map(head);
  if (weighting == Weighting::attention) return map;
  Tensor cells = scaled(map, offered_norms(trace, weights, head, weighting));
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
    const Tensor value = scaled(map, offered_norms(trace, weights, map.id(), Weighting::value));
    const Tensor output = scaled(map, offered_norms(trace, weights, map.id(), Weighting::output));
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
