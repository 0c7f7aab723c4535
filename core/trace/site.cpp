#include "core/trace/site.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <vector>

#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {

constexpr std::string_view layer_prefix = "blocks.{i}.";
constexpr std::string_view hook_prefix = "hook_";

// `query` counts the positions of this pass, `key` those plus the cached ones; k and v hold the positions of this pass.
// d_value is d_head in most models. With latents the dimensions of a head that turn come first. A lane is a channel of
// Mamba or a head of Mamba-2 (core/model/state_space_config.h).
constexpr std::array<SiteInfo, site_kind_count> table{{
    {SiteKind::embed, "hook_embed", "(query, d_model)", false, to_say("token embedding")},
    {SiteKind::pos_embed, "hook_pos_embed", "(query, d_model)", false, to_say("learned position embedding")},
    {SiteKind::segment_embed, "hook_token_type_embed", "(query, d_model)", false,
     to_say("embedding of the token's segment")},
    {SiteKind::resid_pre, "blocks.{i}.hook_resid_pre", "(query, d_model)", true,
     to_say("residual stream entering the block")},
    {SiteKind::ln1_normalized, "blocks.{i}.ln1.hook_out", "(query, d_model)", true,
     to_say("output of the norm before attention, gain and bias applied")},
    {SiteKind::q_latent, "blocks.{i}.attn.hook_q_latent", "(query, q_latent)", true,
     to_say("what queries are made of, behind its norm")},
    {SiteKind::kv_latent, "blocks.{i}.attn.hook_kv_latent", "(query, kv_latent)", true,
     to_say("what values and the part of keys without positions are made of, behind its norm")},
    {SiteKind::mixer_gate, "blocks.{i}.mixer.hook_gate", "(query, d_inner)", true,
     to_say("what gates the state's output, before its activation function")},
    {SiteKind::mixer_x, "blocks.{i}.mixer.hook_x", "(query, d_inner)", true,
     to_say("what the state takes in: channels behind their convolution and activation function")},
    {SiteKind::mixer_delta, "blocks.{i}.mixer.hook_delta", "(query, lane)", true,
     to_say("step of every lane: how much of the token its state takes in, and how far what it holds decays")},
    {SiteKind::mixer_beta, "blocks.{i}.mixer.hook_beta", "(query, lane)", true,
     to_say("rate of every lane: how much of what is missing at its key a token writes there (gated delta rule)")},
    {SiteKind::mixer_b, "blocks.{i}.mixer.hook_b", "(query, group, d_state)", true,
     to_say("by what a token is written into each state")},
    {SiteKind::mixer_c, "blocks.{i}.mixer.hook_c", "(query, group, d_state)", true,
     to_say("by what each state is read")},
    {SiteKind::q, "blocks.{i}.attn.hook_q", "(query, head, d_head)", true, to_say("queries, before rotation")},
    {SiteKind::k, "blocks.{i}.attn.hook_k", "(query, kv_head, d_head)", true, to_say("keys, before rotation")},
    {SiteKind::v_unnormed, "blocks.{i}.attn.v_norm.hook_in", "(query, kv_head, d_value)", true,
     to_say("values before their norm")},
    {SiteKind::v, "blocks.{i}.attn.hook_v", "(query, kv_head, d_value)", true, "values"},
    {SiteKind::attn_gate, "blocks.{i}.attn.hook_gate", "(query, head, d_value)", true,
     to_say("what gates the heads' outputs, before its sigmoid")},
    {SiteKind::q_normed, "blocks.{i}.attn.q_norm.hook_out", "(query, head, d_head)", true,
     to_say("queries after their norm, before rotation")},
    {SiteKind::k_normed, "blocks.{i}.attn.k_norm.hook_out", "(query, kv_head, d_head)", true,
     to_say("keys after their norm, before rotation")},
    {SiteKind::rot_q, "blocks.{i}.attn.hook_rot_q", "(query, head, d_head)", true,
     to_say("queries after the rotary embedding")},
    {SiteKind::rot_k, "blocks.{i}.attn.hook_rot_k", "(query, kv_head, d_head)", true,
     to_say("keys after the rotary embedding")},
    {SiteKind::attn_scores, "blocks.{i}.attn.hook_attn_scores", "(head, query, key)", true,
     to_say("scaled q·k plus bias, masked cells -inf")},
    {SiteKind::pattern, "blocks.{i}.attn.hook_pattern", "(head, query, key)", true,
     to_say("attention: softmax of the scores; of a state space the matrix it amounts to, α")},
    {SiteKind::z, "blocks.{i}.attn.hook_z", "(query, head, d_value)", true,
     to_say("attention times values, per head; before any gate")},
    {SiteKind::z_gated, "blocks.{i}.attn.hook_z_gated", "(query, head, d_value)", true,
     to_say("attention times values behind the gate, or norm: what the output matrix reads")},
    {SiteKind::mixer_gated, "blocks.{i}.mixer.hook_gated", "(query, head, d_head)", true,
     to_say("the state's output behind its gate, and norm where it has one: what the output matrix reads")},
    {SiteKind::result, "blocks.{i}.attn.hook_result", "(query, head, d_model)", true,
     to_say("what each head adds to the residual stream, the output bias apart")},
    {SiteKind::attn_unnormed, "blocks.{i}.ln1_post.hook_in", "(query, d_model)", true,
     to_say("attention's output before the norm behind it")},
    {SiteKind::attn_out, "blocks.{i}.hook_attn_out", "(query, d_model)", true,
     to_say("what attention adds to the residual stream")},
    {SiteKind::resid_mid, "blocks.{i}.hook_resid_mid", "(query, d_model)", true,
     to_say("residual stream between attention and MLP")},
    {SiteKind::ln2_normalized, "blocks.{i}.ln2.hook_out", "(query, d_model)", true,
     to_say("output of the norm before the MLP, gain and bias applied")},
    {SiteKind::router_logits, "blocks.{i}.mlp.hook_router_logits", "(query, expert)", true,
     to_say("the router's logit of every expert, in layers with experts")},
    {SiteKind::router_weights, "blocks.{i}.mlp.hook_router_weights", "(query, expert)", true,
     to_say("what each expert's output is multiplied by, 0 where it does not take the token")},
    {SiteKind::mlp_pre, "blocks.{i}.mlp.hook_pre", "(query, d_mlp)", true,
     to_say("MLP before its activation function")},
    {SiteKind::mlp_pre_linear, "blocks.{i}.mlp.hook_pre_linear", "(query, d_mlp)", true,
     to_say("the branch of a gated MLP that has no activation function")},
    {SiteKind::mlp_post, "blocks.{i}.mlp.hook_post", "(query, d_mlp)", true,
     to_say("MLP after its activation function and gate")},
    {SiteKind::mlp_unnormed, "blocks.{i}.ln2_post.hook_in", "(query, d_model)", true,
     to_say("the MLP's output before the norm behind it")},
    {SiteKind::mlp_out, "blocks.{i}.hook_mlp_out", "(query, d_model)", true,
     to_say("what the MLP adds to the residual stream")},
    {SiteKind::resid_late, "blocks.{i}.hook_resid_late", "(query, d_model)", true,
     to_say("residual stream behind the MLP, to which the layer's own input, or a convolution, adds")},
    {SiteKind::layer_input, "blocks.{i}.hook_layer_input", "(query, d_layer)", true,
     to_say("what this layer gets of the token by itself, from a table and from the embedding")},
    {SiteKind::layer_out, "blocks.{i}.hook_layer_out", "(query, d_model)", true,
     to_say(
         "what the layer's own input, or a convolution beside the block, adds to the residual stream, behind the MLP")},
    {SiteKind::resid_unscaled, "blocks.{i}.hook_resid_unscaled", "(query, d_model)", true,
     to_say("residual stream leaving the block, before the layer's learned number multiplies it")},
    {SiteKind::resid_post, "blocks.{i}.hook_resid_post", "(query, d_model)", true,
     to_say("residual stream leaving the block")},
    {SiteKind::final_normalized, "ln_final.hook_out", "(query, d_model)", false,
     to_say("what the unembedding reads: output of the last norm, or of the layer behind it")},
    {SiteKind::logits, "logits", "(query, vocab)", false, to_say("scores of every token of the vocabulary")},
}};

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].kind != static_cast<SiteKind>(i)) return false;
  return true;
}
static_assert(in_enum_order(), "info() indexes the table by kind");

std::string_view after_prefix(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::string without_hook(std::string_view name) {
  std::string text(name);
  if (const auto at = text.find(hook_prefix); at != std::string::npos) text.erase(at, hook_prefix.size());
  return text;
}

// Every spelling of a kind, the most exact first: "blocks.{i}.attn.hook_q", "attn.hook_q", "attn.q", "attn_q",
// "hook_q", "q".
std::vector<std::string> spellings(const SiteInfo& site) {
  const std::string_view tail = after_prefix(site.pattern, layer_prefix);
  const std::string_view last = tail.substr(tail.rfind('.') == std::string_view::npos ? 0 : tail.rfind('.') + 1);
  std::string underscored = without_hook(tail);
  std::replace(underscored.begin(), underscored.end(), '.', '_');
  std::vector<std::string> all{std::string(site.pattern), std::string(tail), without_hook(tail), underscored};
  // Several norms end in "hook_out" or "hook_in": alone it names none of them.
  if (last != "hook_out" && last != "hook_in") {
    all.emplace_back(last);
    all.push_back(without_hook(last));
  }
  if (site.kind == SiteKind::final_normalized) all.emplace_back("final_out");
  return all;
}

/// Older versions called the output of a norm "normalized", which in TransformerLens is what stands before gain and
/// bias.
std::string with_todays_name(std::string_view text) {
  constexpr std::string_view old = "normalized", now = "out";
  std::string out(text);
  if (text.ends_with(old)) out.replace(out.size() - old.size(), old.size(), now);
  return out;
}

}  // namespace

std::span<const SiteInfo> site_table() {
  return table;
}

const SiteInfo& info(SiteKind kind) {
  return nth(table, kind);
}

std::string name(Site site) {
  const SiteInfo& entry = info(site.kind);
  assert(entry.per_layer == (site.layer >= 0));
  if (!entry.per_layer) return std::string(entry.pattern);
  return "blocks." + std::to_string(site.layer) + "." + std::string(entry.pattern.substr(layer_prefix.size()));
}

std::optional<Site> parse_site(std::string_view given) {
  const std::string todays = with_todays_name(given);
  const std::string_view text = todays;
  constexpr std::string_view blocks = "blocks.";
  if (!text.starts_with(blocks)) {
    for (const SiteInfo& entry : table)
      if (!entry.per_layer && entry.pattern == text) return Site{entry.kind, -1};
    return std::nullopt;
  }
  const std::string_view rest = text.substr(blocks.size());
  const std::size_t dot = rest.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view digits = rest.substr(0, dot);
  int layer = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
  // One spelling per site: "blocks.03…" and "blocks.-1…" are not names that name() gives.
  if (failure != std::errc{} || end != digits.data() + digits.size() || std::to_string(layer) != digits || layer < 0)
    return std::nullopt;
  for (const SiteInfo& entry : table)
    if (entry.per_layer && entry.pattern.substr(layer_prefix.size()) == rest.substr(dot + 1))
      return Site{entry.kind, layer};
  return std::nullopt;
}

std::optional<SiteKind> parse_site_kind(std::string_view given) {
  const std::string text = with_todays_name(given);
  for (const SiteInfo& entry : table) {
    const std::vector<std::string> known = spellings(entry);
    if (std::find(known.begin(), known.end(), text) != known.end()) return entry.kind;
  }
  return std::nullopt;
}

}  // namespace headscope
