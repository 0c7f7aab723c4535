#include "core/analysis/token_path.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/analysis/need.h"
#include "core/analysis/norms.h"
#include "core/analysis/residual_stream.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/weights.h"

namespace headscope {

WeightTying weight_tying(const Model& model) {
  const ModelWeights weights = model.weights();
  return {weights.unembedding.storage() == weights.token_embedding.storage(), weights.token_embedding.bytes()};
}

std::set<SiteKind> token_path_sites(const Model& model) {
  const ModelConfig& c = model.config();
  std::set<SiteKind> sites{SiteKind::embed, SiteKind::resid_pre, SiteKind::attn_out, SiteKind::resid_post};
  add_inputs(c, sites);
  if (c.predicts) sites.insert(SiteKind::final_normalized);
  if (c.position == PositionKind::learned) sites.insert(SiteKind::pos_embed);
  if (c.dims.d_mlp > 0) sites.insert(SiteKind::mlp_out);
  if (c.dims.has_mid()) sites.insert(SiteKind::resid_mid);
  if (c.segments > 0) sites.insert(SiteKind::segment_embed);
  if (c.dims.d_layer > 0 || c.convolution) sites.insert(SiteKind::layer_out);
  return sites;
}

namespace {
/// What layers write that do not attend; α is what they amount to.
std::string mixed(StateKind kind) {
  switch (kind) {
    case StateKind::selective:
      return said("Σ heads (α x + d x) gated W_O");
    case StateKind::delta:
      return said("Σ heads norm(α v) gated W_O");
    case StateKind::convolution:
      return said("Σ heads α x W_O");
  }
  return "";
}
}  // namespace

TokenPath read_token_path(const Model& model, const Trace& trace, Index given, int answers) {
  const ModelConfig& config = model.config();
  TokenPath out;
  out.position = position_of(trace, given, "path: position");
  // A picture's scores are told by CLS alone.
  const bool answers_here = config.predicts && !(config.vision && out.position != 0);
  if (answers_here) (void)need_logit_row(trace, out.position, "path");
  const auto add = [&](Site site, std::string name, std::string formula, bool adds, const Tensor& all) {
    PathStage& stage = out.stages.emplace_back();
    stage.site = site;
    stage.name = std::move(name);
    stage.formula = std::move(formula);
    stage.adds = adds;
    stage.shape = fmt::format("{} × {}", all.dim(0), all.dim(1));
    stage.row = all.select(0, out.position).copy();
    const auto values = stage.row.values();
    stage.norm = norm_of(values);
    stage.mean = statistics(values).mean;
    const auto [low, high] = std::ranges::minmax(values);
    stage.low = static_cast<double>(low);
    stage.high = static_cast<double>(high);
  };
  const auto site = [&](SiteKind kind, int layer, std::string name, std::string formula, bool adds = false) {
    add({kind, layer}, std::move(name), std::move(formula), adds, need(trace, {kind, layer}));
  };
  if (config.vision)
    site(SiteKind::embed, -1, said("embedding"),
         out.position < config.vision->leading
             ? say("learned: {}", nth(trace.tokens, out.position).label)
             : say("{} numbers of the patch · W_patch + b", config.vision->patch_numbers()));
  else if (config.sound)
    site(SiteKind::embed, -1, said("two convolutions"),
         say("of {} frames around {}", 5, nth(trace.tokens, out.position).label));
  else
    site(SiteKind::embed, -1, said("token embedding"), say("row {} of W_E", nth(trace.tokens, out.position).id));
  const bool placed = config.position == PositionKind::learned;
  if (placed) site(SiteKind::pos_embed, -1, said("position"), say("row {} of W_pos", out.position), true);
  if (placed || config.segments > 0) {
    if (config.segments > 0)
      site(SiteKind::segment_embed, -1, said("segment"), said("row of the token's segment of W_segment"), true);
    site(SiteKind::resid_pre, 0, said("sum"),
         say("{}token{}{}{}", config.norm_of_embeddings ? said("norm(") : "", placed ? said(" + position") : "",
             config.segments > 0 ? said(" + segment") : "",
             std::string(config.norm_of_embeddings ? ")" : "") + (config.narrow_sum() ? " W + b" : "")));
  }
  for (int layer = 0; layer < config.dims.layers; ++layer) {
    const bool mlp = config.dims.has_mlp(layer), attends = config.dims.attends(layer);
    const bool before = config.norms_before(layer), behind = config.norms_behind(layer), sums = config.norms_sums();
    const auto written = [&](const std::string& formula) { return behind ? say("norm({})", formula) : formula; };
    if (before && (layer > 0 || config.first_norm))
      site(SiteKind::ln1_normalized, layer, say("{} norm", layer),
           config.entered(layer) < layer ? said("norm(x), as x entered the layer before") : said("norm(x)"));
    const bool convolves = !attends && config.dims.state_kind == StateKind::convolution;
    site(SiteKind::attn_out, layer,
         fmt::format("{} {}", layer,
                     attends     ? said("attention")
                     : convolves ? said("convolution")
                                 : said("state")),
         written(!attends ? config.state_space && config.state_space->steady ? said("norm(all heads' α v) gated W_O")
                                                                             : mixed(config.dims.state_kind)
                 : config.output_gate ? said("Σ heads (A v) σ(gate) W_O")
                 : config.z_norm      ? said("norm(all heads' A v) W_O")
                                      : said("Σ heads A v W_O")),
         true);
    if (config.cross()) {
      add({SiteKind::attn_out, layer}, say("{} cross-attention", layer), said("Σ heads A v W_O, v of the source"), true,
          need(*trace.cross, {SiteKind::attn_out, layer}));
      out.stages.back().stack = Stack::cross;
    }
    // A stream that is multiplied before something is added to it.
    const auto kept = [](double by) { return by == 1 ? std::string("x") : fmt::format("{:g} x", by); };
    const std::string attended =
        convolves         ? said("x + convolution")
        : !attends        ? (sums ? say("norm({} + state)", kept(config.state_stream)) : said("x + state"))
        : !config.cross() ? (sums ? say("norm({} + attention)", kept(config.attention_stream)) : said("x + attention"))
        : sums            ? said("norm(norm(x + attention) + cross-attention)")
                          : said("x + attention + cross-attention");
    if (mlp) {
      if (config.dims.has_mid()) site(SiteKind::resid_mid, layer, say("{} stream", layer), attended);
      if (mlp_input(config, layer) == SiteKind::ln2_normalized)
        site(SiteKind::ln2_normalized, layer, say("{} norm", layer), said("norm(x)"));
      site(SiteKind::mlp_out, layer, fmt::format("{} MLP", layer),
           written(config.experts.at(layer) && config.experts.beside
                       ? said("norm((φ(x W_gate) ∘ x W_up) W_down) + norm(Σ over the experts that take the token of "
                              "weight · expert(x))")
                   : config.experts.at(layer) ? said("Σ over the experts that take the token of weight · expert(x)")
                   : config.gated_mlp && config.mlp_norm ? said("norm(φ(x W_gate) ∘ x W_up) W_down")
                   : config.gated_mlp                    ? said("(φ(x W_gate) ∘ x W_up) W_down")
                                                         : said("φ(x W_in) W_out")),
           true);
    }
    std::string leaving = config.dims.parallel ? said("x + attention + MLP")
                          : !mlp               ? attended
                          : sums               ? say("norm({} + MLP)", kept(config.mlp_stream))
                                               : "x + MLP";
    if (config.dims.d_layer > 0) {
      site(SiteKind::layer_out, layer, say("{} input of its own", layer), said("norm((φ(x W_gate) ∘ input) W_out)"),
           true);
      leaving = say("{} + input", leaving);
    }
    if (config.convolution && layer == 0) {
      site(SiteKind::layer_out, layer, said("convolution of neighbours"), said("φ(Σ x of the tokens around W + b)"),
           true);
      leaving = say("norm({} + convolution)", leaving);
    }
    if (config.dims.stream_scales) leaving = say("({}) times a learned number", leaving);
    site(SiteKind::resid_post, layer, say("{} stream", layer), leaving);
  }
  if (!answers_here) return out;
  if (config.head_layer)
    site(SiteKind::final_normalized, -1, said("head"), said("norm(φ(x W + b))"));
  else
    site(SiteKind::final_normalized, -1, said("last norm"), said("norm(x)"));
  add({SiteKind::logits}, said("logits"), weight_tying(model).tied ? "x W_Eᵀ" : "x W_U", false, trace.logits);
  out.answers = top_next(trace, answers, static_cast<int>(out.position));
  return out;
}

}  // namespace headscope
