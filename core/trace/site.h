#pragma once
// Named places in a forward pass where a tensor can be recorded or replaced. Names are TransformerLens' hook names
// (Nanda & Bloom, TransformerLens, 2022), because notebooks already speak them. One table documents every kind.

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headscope {

enum class SiteKind {
  embed,           // token embedding
  pos_embed,       // learned position embedding (absent with RoPE)
  segment_embed,   // of the token's segment (absent in most models)
  resid_pre,       // residual stream entering the block
  ln1_normalized,  // output of the norm before attention, gain and bias applied
  q_latent,
  kv_latent,  // what queries, and keys and values, are made of (latent attention only), behind their norm
  mixer_gate,
  mixer_x,
  mixer_delta,
  mixer_beta,
  mixer_b,
  mixer_c,  // of layers of a state space, in place of all to attn_scores: gate, input, step, rate and what writes and
            // reads
  q,
  k,           // projections, before rotation
  v_unnormed,  // the projection, where values have a norm
  v,           // values as they are mixed: the projection, or the norm of it
  attn_gate,   // what gates the heads' outputs, before its sigmoid (only where the model has one)
  q_normed,
  k_normed,  // after the norm of queries and keys (only where the model has one)
  rot_q,
  rot_k,          // after RoPE (absent with learned positions)
  attn_scores,    // scaled q·k + bias, masked cells -inf
  pattern,        // softmax of the scores, or what a state space amounts to
  z,              // pattern · v, per head; of a state space y
  z_gated,        // z behind its gate, which the output matrix reads (only where there is one)
  mixer_gated,    // of a state space: z behind its gate, which the output matrix reads
  result,         // what each head adds to the residual stream: z_h W_O^h (bias apart)
  attn_unnormed,  // sum of results + bias, where a norm stands behind it
  attn_out,       // what attention adds to the residual stream: the sum, or the norm of it
  resid_mid,      // residual stream between attention and MLP (absent where both read the same stream)
  ln2_normalized,
  router_logits,   // of layers with experts: each expert's, from the token
  router_weights,  // what each expert's output is multiplied by; 0 where it does not take the token
  mlp_pre,         // of layers without experts, as the two below: before the activation function
  mlp_pre_linear,  // the ungated branch (gated MLPs only)
  mlp_post,        // after the activation (and gate)
  mlp_unnormed,    // what the MLP puts out, where a norm stands behind it
  mlp_out,
  resid_late,        // residual stream that layer_out is added to (only where there is one)
  layer_input,       // what this layer gets of the token by itself (only where layers do)
  layer_out,         // what that, or a convolution of what enters layer 0, adds to the stream behind the MLP
  resid_unscaled,    // residual stream before the layer's learned number multiplies it (only where there is one)
  resid_post,        // residual stream leaving the block
  final_normalized,  // what the unembedding reads: output of the last norm, or of the layer behind it
  logits,
};
inline constexpr int site_kind_count = static_cast<int>(SiteKind::logits) + 1;

/// Of embeddings: where a site's shape says d_model it is ModelDims::embed_width(). Of what the unembedding reads
/// (final_normalized) it is out_width().
constexpr bool of_embeddings(SiteKind kind) {
  return kind == SiteKind::embed || kind == SiteKind::pos_embed || kind == SiteKind::segment_embed;
}

/// Of layers that are no attention, and of those that are.
constexpr bool of_mixer(SiteKind kind) {
  return (kind >= SiteKind::mixer_gate && kind <= SiteKind::mixer_c) || kind == SiteKind::mixer_gated;
}
constexpr bool of_attention(SiteKind kind) {
  return kind == SiteKind::q_latent || kind == SiteKind::kv_latent ||
         (kind >= SiteKind::q && kind <= SiteKind::attn_scores) || kind == SiteKind::z_gated;
}
/// Of an MLP, or of what stands before it: what a block without one does not have.
constexpr bool of_mlp(SiteKind kind) {
  return kind >= SiteKind::resid_mid && kind <= SiteKind::mlp_out;
}
struct SiteInfo {
  SiteKind kind;
  std::string_view pattern;  ///< "blocks.{i}.attn.hook_q", "hook_embed", …
  std::string_view shape;    ///< "(query, head, d_head)"
  bool per_layer;
  std::string_view meaning;
};

struct Site {
  SiteKind kind;
  int layer = -1;  ///< -1 for sites outside the blocks
  auto operator<=>(const Site&) const = default;
};

/// Every kind, in the order in which a forward pass reaches them.
std::span<const SiteInfo> site_table();
const SiteInfo& info(SiteKind kind);
/// "blocks.3.attn.hook_q"
std::string name(Site site);
/// The inverse of name(), which also knows the "hook_normalized" of older files; nullopt for anything else.
std::optional<Site> parse_site(std::string_view name);
/// A kind by the last part of its name as notebooks abbreviate it: "pattern", "q", "resid_pre", "mlp_out"; also full
/// patterns.
std::optional<SiteKind> parse_site_kind(std::string_view name);

}  // namespace headscope
