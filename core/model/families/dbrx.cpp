// DBRX (Databricks, Introducing DBRX, 2024): LayerNorms without bias, queries, keys and values cut off, each token
// through a few of many MLPs, of which a file keeps the same matrix of all below one another.

#include <fmt/format.h>

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
/// The object attn_config: key heads, what is clipped, and the base of the rotation in its makers' files.
void attention_keys(ConfigMap& keys, ModelConfig& c) {
  if (!keys.reading()) {
    ConfigWriter nested;
    nested.put("kv_n_heads", c.dims.kv_heads);
    if (c.clip_qkv > 0) nested.put("clip_qkv", c.clip_qkv);
    nested.put("rope_theta", c.rotary.base);
    return keys.put("attn_config", nested);
  }
  c.dims.kv_heads = 1;
  const auto nested = keys.json().object("attn_config");
  if (!nested) return;
  c.dims.kv_heads = nested->integer("kv_n_heads", 1, config_limits::heads, 1);
  if (c.dims.heads % c.dims.kv_heads != 0)
    throw nested->error("kv_n_heads", fmt::format("a divisor of n_heads = {}", c.dims.heads),
                        std::to_string(c.dims.kv_heads));
  c.clip_qkv = nested->number("clip_qkv", 0, 1e6, 0);
  const double base = nested->number("rope_theta", 1, 1e12, c.rotary.base);
  // Files of its makers say it here alone; Transformers 5.24 looks at the place that they leave out.
  if (!keys.json().has("rope_theta") && !keys.json().has("rope_parameters")) c.rotary.base = base;
  if (base != c.rotary.base)
    throw nested->error("rope_theta", fmt::format("{}, as rope_theta or rope_parameters say", c.rotary.base),
                        fmt::format("{}", base), "Transformers turns by the one, its makers' own code by the other");
}

/// The object ffn_config.
void expert_object(ConfigMap& keys, ModelConfig& c) {
  ExpertConfig& e = c.experts;
  if (!keys.reading()) {
    ConfigWriter nested, activation;
    activation.put("name", activation_name(c.activation));
    nested.put("ffn_act_fn", activation);
    nested.put("ffn_hidden_size", e.width);
    nested.put("moe_num_experts", e.count);
    nested.put("moe_top_k", e.per_token);
    nested.put("moe_normalize_expert_weights", e.renormalized ? std::optional<std::int32_t>(1) : std::nullopt);
    return keys.put("ffn_config", nested);
  }
  const ConfigReader whole = keys.json().object("ffn_config").value_or(ConfigReader::parse("{}", "ffn_config"));
  e.width = c.dims.d_mlp = whole.integer("ffn_hidden_size", 1, config_limits::d_mlp, 3584);
  e.count = c.dims.experts = whole.integer("moe_num_experts", 1, 4096, 4);
  e.per_token = whole.integer("moe_top_k", 1, 4096, 1);
  if (e.per_token > e.count)
    throw whole.error("moe_top_k", fmt::format("at most the {} experts", e.count), std::to_string(e.per_token));
  e.renormalized = !whole.null("moe_normalize_expert_weights");
  if (const double power = whole.number("moe_normalize_expert_weights", 0, 1e6, 1); power != 1)
    throw whole.error("moe_normalize_expert_weights", "1, or null", fmt::format("{}", power),
                      "weights are divided by their sum alone");
  c.gated_mlp = true;
  c.activation = Activation::silu;
  if (const auto activation = whole.object("ffn_act_fn")) c.activation = read_activation(*activation, "name", "silu");
}

void dbrx_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.layers = "n_layers",
                   .heads = "n_heads",
                   .kv_heads = "",
                   .width = "d_model",
                   .d_head = "",
                   .mlp = "",
                   .context = "max_seq_len"});
  keys.norm(c, NormKind::layer_norm, "", 1e-5);
  c.bias = BiasSet::none();
  keys.rotary(c, 10000);
  attention_keys(keys, c);
  expert_object(keys, c);
  keys.ends(c, false);
}

WeightNames dbrx_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"transformer.", ""};
  names.embedding = "wte";
  names.block = "blocks.";
  names.ln1 = "norm_attn_norm.norm_1";
  names.ln2 = "norm_attn_norm.norm_2";
  names.qkv = "norm_attn_norm.attn.Wqkv";
  names.o = "norm_attn_norm.attn.out_proj";
  names.experts.router = "ffn.router.layer";
  names.experts.gate_below = "ffn.experts.mlp.w1";
  names.experts.up_below = "ffn.experts.mlp.v1";
  names.experts.down_below = "ffn.experts.mlp.w2";
  names.final_norm = "norm_f";
  return names;
}
}  // namespace

Family dbrx_family();  // declared with all others in family.cpp
Family dbrx_family() {
  return usual_family("dbrx", "DbrxForCausalLM",
                      to_say("LayerNorm, queries, keys and values cut off, each token through a few of many MLPs"),
                      &dbrx_keys, &dbrx_names);
}

}  // namespace headscope
