#include "core/analysis/logit_attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/singular_edit.h"
#include "core/model/weights.h"
#include "core/tensor/matrices.h"
#include "core/trace/model_heads.h"

namespace headscope {

namespace {
using Kind = AttributionPart::Kind;
using Eigen::VectorXd;

Eigen::VectorXd row_of(const Tensor& t, Index row) {
  return vector_of(t.select(0, row));
}

/// What a part is multiplied by, and the frozen scale in it.
struct Direction {
  VectorXd d;
  double scale = 1, bias = 0;
};

Direction direction(const ModelConfig& config, const ModelWeights& weights, const VectorXd& residual,
                    const AttributionOf& of) {
  need_one_unembedding(config, "attribution");
  if (config.norm_place != NormPlace::before)
    throw Error(
        "attribution", "a model whose blocks add what they write as it is", config.name,
        "a norm behind attention and MLP rescales the sum of what its heads write, so that no head has a share");
  if (config.head_layer)
    throw Error("attribution", "a model whose logits are sums of what its blocks write", config.name,
                "a layer with an activation of its own stands before them");
  if (config.logit_cap > 0)
    throw Error(
        "attribution", "a model whose logits are sums", config.name,
        fmt::format("a soft cap of {} bends its logits, so that parts do not add up to them", config.logit_cap));
  VectorXd u = vector_of(weights.unembedding.select(1, of.token));
  if (of.against) u -= vector_of(weights.unembedding.select(1, *of.against));
  u *= config.logit_scale;
  Direction out;
  VectorXd d = u.cwiseProduct(vector_of(weights.final_norm.gain));
  const NormKind kind = weights.final_norm.kind;
  if (kind == NormKind::layer_norm) {
    out.scale = 1 / std::sqrt((residual.array() - residual.mean()).square().mean() + config.norm_epsilon);
    d.array() -= d.mean();
    out.bias = u.dot(vector_of(weights.final_norm.bias));
  } else {
    out.scale = kind == NormKind::none ? 1 : 1 / std::sqrt(residual.array().square().mean() + config.norm_epsilon);
  }
  out.d = out.scale * d;
  return out;
}
}  // namespace

std::string name(const AttributionPart& part) {
  switch (part.kind) {
    case Kind::token_embedding:
      return said("embedding");
    case Kind::position_embedding:
      return said("positions");
    case Kind::head:
      return say("head {}.{}", part.layer, part.head);
    case Kind::attention_bias:
      return part.attends ? say("attn bias {}", part.layer) : say("mixer bias {}", part.layer);
    case Kind::cross_head:
      return say("head cross.{}.{}", part.layer, part.head);
    case Kind::cross_bias:
      return say("attn bias cross.{}", part.layer);
    case Kind::mlp:
      return fmt::format("MLP {}", part.layer);
    case Kind::norm_bias:
      return said("norm bias");
    case Kind::unembedding_bias:
      return said("unembedding bias");
    case Kind::remainder:
      return said("edits");
  }
  return "";
}

double LogitAttribution::sum() const {
  double total = 0;
  for (const AttributionPart& part : parts) total += part.value;
  return total;
}

double LogitAttribution::value(Kind kind, int layer, int head) const {
  for (const AttributionPart& part : parts)
    if (part.kind == kind && part.layer == layer && part.head == head) return part.value;
  return 0;
}

std::set<SiteKind> attribution_sites(const Model& model) {
  std::set<SiteKind> sites{SiteKind::embed, SiteKind::resid_post};
  const ModelConfig& config = model.config();
  for (int layer = 0; layer < config.dims.layers; ++layer) sites.insert(input_site(config, WeightMatrix::o, layer));
  if (config.dims.any_attends()) sites.insert(SiteKind::v);
  if (config.output_gate) sites.insert(SiteKind::attn_gate);
  if (model.config().position == PositionKind::learned) sites.insert(SiteKind::pos_embed);
  if (model.config().dims.d_mlp > 0) sites.insert(SiteKind::mlp_out);
  return sites;
}

LogitDirection logit_direction(const Model& model, const Trace& trace, const AttributionOf& of) {
  check_token(trace, of.token);
  if (of.against) check_token(trace, *of.against);
  const Index position = position_of(trace, of.position, "attribution: position");
  const VectorXd residual = row_of(need(trace, {SiteKind::resid_post, trace.model.dims.layers - 1}), position);
  const Direction along = direction(model.config(), model.weights(), residual, of);
  return {{along.d.begin(), along.d.end()}, along.scale, along.bias};
}

LogitAttribution logit_attribution(const Model& model, const Trace& trace, const AttributionOf& of,
                                   const std::vector<Intervention>& edits) {
  const ModelConfig& config = model.config();
  const ModelDims& dims = config.dims;
  check_token(trace, of.token);
  if (of.against) check_token(trace, *of.against);
  LogitAttribution out;
  out.of = of;
  const Index position = out.of.position = position_of(trace, of.position, "attribution: position");
  const auto n = static_cast<Index>(trace.tokens.size());
  (void)need_logit_row(trace, position, "attribution");
  out.logit = static_cast<double>(trace.logits.at(position, of.token));
  if (of.against) out.logit -= static_cast<double>(trace.logits.at(position, *of.against));

  const ModelWeights weights = weights_written_with(model, edits, static_cast<int>(n), static_cast<int>(position));
  const VectorXd residual = row_of(need(trace, {SiteKind::resid_post, dims.layers - 1}), position);
  const Direction along = direction(config, weights, residual, out.of);
  out.scale = along.scale;
  VectorXd written = VectorXd::Zero(dims.d_model);
  const auto add = [&](Kind kind, int layer, int head, const VectorXd& part) {
    written += part;
    out.parts.push_back({kind, layer, head, part.dot(along.d), layer < 0 || dims.attends(layer)});
  };
  add(Kind::token_embedding, -1, -1, row_of(need(trace, {SiteKind::embed}), position));
  if (config.position == PositionKind::learned)
    add(Kind::position_embedding, -1, -1, row_of(need(trace, {SiteKind::pos_embed}), position));
  // What the heads of a block's attention wrote, and (rows of `by_source`) from where.
  const auto add_heads = [&](const Trace& part, int layer, const BlockWeights& block, Kind kind, Kind bias,
                             Tensor& by_source) {
    const Tensor z = need(part, {input_site(config, WeightMatrix::o, layer), layer}).select(0, position);
    // What a norm or a step of the whole row makes of z has no shares by source.
    const bool shares = dims.attends(layer) && !config.z_norm && config.input_bits == 0;
    const Tensor v = shares ? need(part, {SiteKind::v, layer}) : Tensor();
    const Tensor gate =
        block.z_gate.defined() ? need(part, {SiteKind::attn_gate, layer}).select(0, position) : Tensor();
    for (int head = 0; head < dims.heads_of(layer); ++head) {
      const Index line = head_index(dims, {layer, head});
      const RowMajor<double> o = matrix_of(nth(block.heads, head).o);  // (d_head, d_model)
      add(kind, layer, head, o.transpose() * vector_of(z.select(0, head)));
      if (!v.defined()) {
        for (Index key = 0; by_source.defined() && key < by_source.dim(1); ++key)
          by_source.ref(line, key) = std::numeric_limits<float>::quiet_NaN();
        continue;
      }
      VectorXd of_value = o * along.d;  // (d_head): what one unit of each value dimension adds to the logit
      if (gate.defined()) of_value.array() /= 1 + (-vector_of(gate.select(0, head)).array()).exp();
      const Index group = dims.kv_of(head, layer);
      const AttentionMap& map = part.map({layer, head});
      for (Index key = 0; key < map.n_key(); ++key) {
        const auto weight = static_cast<double>(map.weight(position, key));
        if (weight == 0) continue;
        by_source.ref(line, key) =
            static_cast<float>(weight * vector_of(v.select(0, key).select(0, group)).dot(of_value));
      }
    }
    if (block.o_bias.defined()) add(bias, layer, -1, vector_of(block.o_bias));
  };
  if (dims.any_attends()) out.by_source = Tensor::zeros({dims.all_heads(), n});
  if (trace.cross)
    out.cross_by_source = Tensor::zeros({dims.all_heads(), static_cast<Index>(trace.cross->tokens.size())});
  for (int layer = 0; layer < dims.layers; ++layer) {
    add_heads(trace, layer, nth(weights.blocks, layer), Kind::head, Kind::attention_bias, out.by_source);
    if (trace.cross)
      add_heads(*trace.cross, layer, nth(weights.cross, layer), Kind::cross_head, Kind::cross_bias,
                out.cross_by_source);
    if (dims.has_mlp(layer)) add(Kind::mlp, layer, -1, row_of(need(trace, {SiteKind::mlp_out, layer}), position));
  }
  // Rounding of the pass is far below this; what is left over was put there by an edit.
  const double rest = (residual - written).dot(along.d);
  if (std::abs(rest) > 1e-4 * std::max(1.0, std::abs(out.logit))) out.parts.push_back({Kind::remainder, -1, -1, rest});
  if (weights.final_norm.kind == NormKind::layer_norm) out.parts.push_back({Kind::norm_bias, -1, -1, along.bias});
  if (weights.unembedding_bias.defined()) {
    double bias = static_cast<double>(weights.unembedding_bias.at(of.token));
    if (of.against) bias -= static_cast<double>(weights.unembedding_bias.at(*of.against));
    out.parts.push_back({Kind::unembedding_bias, -1, -1, config.logit_scale * bias});
  }
  return out;
}

}  // namespace headscope
