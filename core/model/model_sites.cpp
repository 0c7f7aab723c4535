// What a model says of itself: its configuration, and which sites fire in it.

#include <algorithm>
#include <utility>

#include "core/model/model_parts.h"
#include "core/trace/capture.h"

namespace headscope {
namespace {

/// The sites of an MLP that every token passes through, and of a router.
bool of_dense(SiteKind kind) {
  return kind == SiteKind::mlp_pre || kind == SiteKind::mlp_pre_linear || kind == SiteKind::mlp_post;
}
bool of_router(SiteKind kind) {
  return kind == SiteKind::router_logits || kind == SiteKind::router_weights;
}

/// Whether some layer has it.
bool somewhere(const ModelDims& dims, SiteKind kind) {
  for (int layer = 0; layer < dims.layers; ++layer)
    if (has_site(dims, {kind, layer})) return true;
  return false;
}

}  // namespace

Model::Model(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)), derived_(std::make_unique<Derived>()) {}
Model::~Model() = default;
const ModelConfig& Model::config() const {
  return parts_->config;
}
ModelInfo Model::info() const {
  return parts_->info;
}

const Model* Model::encoder() const {
  return parts_->encoder.get();
}

std::vector<SiteKind> Model::sites(Stack part) const {
  if (part == Stack::encoder && encoder()) return encoder()->sites();
  if (part != Stack::cross || !encoder()) return sites();
  std::vector<SiteKind> kinds{SiteKind::resid_pre};
  if (parts_->config.norms_before()) kinds.push_back(SiteKind::ln1_normalized);
  for (const SiteKind kind : {SiteKind::q, SiteKind::k, SiteKind::v, SiteKind::attn_scores, SiteKind::pattern,
                              SiteKind::z, SiteKind::result, SiteKind::attn_out})
    kinds.push_back(kind);
  if (parts_->config.norms_behind()) kinds.push_back(SiteKind::attn_unnormed);
  return kinds;
}

std::vector<SiteKind> Model::sites() const {
  const ModelConfig& c = parts_->config;
  std::vector<SiteKind> kinds;
  for (const SiteInfo& site : site_table()) {
    if (site.kind == SiteKind::pos_embed && c.position != PositionKind::learned) continue;
    if (site.kind == SiteKind::segment_embed && c.segments == 0) continue;
    const bool feeds = c.stack == Stack::encoder && c.last_norm() && site.kind == SiteKind::final_normalized;
    if ((site.kind == SiteKind::final_normalized || site.kind == SiteKind::logits) && !c.predicts && !feeds) continue;
    if ((site.kind == SiteKind::rot_q || site.kind == SiteKind::rot_k) && c.position != PositionKind::rotary) continue;
    if ((site.kind == SiteKind::q_normed || site.kind == SiteKind::k_normed) && c.qk_norm == QkNorm::none) continue;
    if (site.kind == SiteKind::v_unnormed && !c.value_norm) continue;
    constexpr int some = -1;  // layer: which ones, has_site() says
    if (site.kind == SiteKind::ln1_normalized && attention_input(c, some) != site.kind) continue;
    if (site.kind == SiteKind::ln2_normalized && mlp_input(c, some) != site.kind) continue;
    if (site.kind == SiteKind::attn_unnormed && output_site(c, WeightMatrix::o, some) != site.kind) continue;
    if (site.kind == SiteKind::mlp_unnormed && output_site(c, WeightMatrix::mlp_out, some) != site.kind) continue;
    if (site.kind == SiteKind::resid_mid && !c.dims.has_mid()) continue;
    if (site.kind == SiteKind::mlp_pre_linear && !c.gated_mlp) continue;
    if (of_router(site.kind) && !c.experts.anywhere()) continue;
    if (of_dense(site.kind) && !c.has_dense()) continue;
    if (site.per_layer && !somewhere(c.dims, site.kind)) continue;
    if (site.kind == SiteKind::attn_gate && !c.output_gate) continue;
    if (site.kind == SiteKind::z_gated && !c.changes_z()) continue;
    if (site.kind == SiteKind::q_latent && c.dims.q_latent == 0) continue;
    if (site.kind == SiteKind::kv_latent && !c.latent()) continue;
    kinds.push_back(site.kind);
  }
  return kinds;
}

bool Model::fires(Site site) const {
  const std::vector<SiteKind> kinds = sites();
  const bool sparse = site.layer >= 0 && parts_->config.experts.at(site.layer);
  return std::ranges::find(kinds, site.kind) != kinds.end() && has_site(parts_->config.dims, site) &&
         !(sparse ? of_dense(site.kind) && !parts_->config.experts.beside : of_router(site.kind));
}

}  // namespace headscope
