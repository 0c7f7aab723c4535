// Molmo 2 (Allen AI, Molmo2: Open Weights and Data for Vision-Language Models with Video Understanding and Grounding,
// 2026), of which the half that reads text is read. Rows of the embedding behind the vocabulary are tokens of pictures,
// which no text has.

#include <algorithm>

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
constexpr int of_pictures = 128;

void molmo2_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 128;
  const bool older = keys.reading() && !keys.json().has("rms_norm_eps") && keys.json().has("layer_norm_eps");
  keys.norm(c, NormKind::rms_norm, older ? "layer_norm_eps" : "rms_norm_eps", 1e-6);
  std::string kind = c.qk_norm == QkNorm::full_width ? "olmo" : "qwen3";
  keys.text("qk_norm_type", kind, "qwen3");
  c.qk_norm = !keys.reading() ? c.qk_norm
                              : keys.json().choice<QkNorm>("qk_norm_type", kind,
                                                           {{"qwen3", QkNorm::per_head}, {"olmo", QkNorm::full_width}});
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  const bool renamed = keys.reading() && !keys.json().has("attention_bias") && keys.json().has("qkv_bias");
  keys.biases(c, renamed ? "qkv_bias" : "attention_bias");
  c.bias.o = false;
  bool behind = c.norm_place == NormPlace::behind;
  keys.flag("norm_after", behind, false);
  c.norm_place = behind ? NormPlace::behind : NormPlace::before;
  keys.only("use_qk_norm", true, "the library does not know it in this family");
  int more = of_pictures;
  keys.integer("additional_vocab_size", more, of_pictures, of_pictures, of_pictures);
  keys.ends(c, false);
  if (!keys.reading() && !c.layer_rotary.empty()) {
    std::vector<int> scaled;
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (c.rotary_of(layer) == c.rotary) scaled.push_back(layer);
    keys.put("rope_scaling_layers", scaled);
  }
  if (!keys.reading() || c.rotary.scaling == RotaryConfig::Scaling::none) {
    if (keys.reading()) (void)keys.json().has("rope_scaling_layers");  // of a rotation that is not scaled
    return;
  }
  const auto scaled = keys.json().integers("rope_scaling_layers", 0, config_limits::layers);
  if (!scaled) return;
  RotaryConfig plain;
  plain.base = c.rotary.base, plain.width = c.rotary.width, plain.layout = c.rotary.layout;
  for (int layer = 0; layer < c.dims.layers; ++layer)
    c.layer_rotary.push_back(std::ranges::count(*scaled, layer) > 0 ? c.rotary : plain);
}

WeightNames molmo2_names(const ModelConfig& c) {
  WeightNames names;
  if (c.norm_place == NormPlace::behind) names.ln1_post = names.ln1, names.ln2_post = names.ln2;
  return names;
}

/// As published.
WeightNames molmo2_older_names(const ModelConfig& c) {
  WeightNames names;
  names.ln1 = "attn_norm", names.ln2 = "ff_norm";
  if (c.norm_place == NormPlace::behind) names.ln1_post = names.ln1, names.ln2_post = names.ln2;
  names.qkv = "self_attn.att_proj", names.o = "self_attn.attn_out";
  names.gate_up = "mlp.ff_proj", names.up_first = true, names.down = "mlp.ff_out";
  return names;
}
}  // namespace

Family molmo2_family();  // declared with all others in family.cpp
Family molmo2_family() {
  return text_half_family({.model_type = "molmo2",
                           .architecture = "Molmo2ForConditionalGeneration",
                           .summary = to_say("as qwen3: the half that reads text, pictures are not read"),
                           .types = {"molmo2_text"},
                           .map = &molmo2_keys,
                           .names = &molmo2_names,
                           .older_names = &molmo2_older_names,
                           .older = "model.layers.0.self_attn.att_proj.weight",
                           .newer = "model.layers.0.self_attn.q_proj.weight",
                           .usual = {{"vocab_size", 151936},
                                     {"hidden_size", 4096},
                                     {"intermediate_size", 12288},
                                     {"num_hidden_layers", 36},
                                     {"num_attention_heads", 32},
                                     {"num_key_value_heads", 8},
                                     {"max_position_embeddings", 36864}},
                           .more_tokens = of_pictures});
}

}  // namespace headscope
