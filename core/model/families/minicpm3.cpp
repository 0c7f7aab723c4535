// MiniCPM3 (OpenBMB, MiniCPM: Unveiling the Potential of Small Language Models with Scalable Training Strategies,
// 2024): keys and values of a latent as in DeepSeek V2, what turns of a head in halves, with numbers that embeddings,
// what blocks add, and logits are multiplied by.

#include <cmath>

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void minicpm3_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) c.rotary.layout = RotaryLayout::half_split;
  if (keys.reading()) {
    const int width = keys.json().integer("hidden_size", 1, config_limits::d_model),
              heads = keys.json().integer("num_attention_heads", 1, config_limits::heads);
    const ConfigReader filled = keys.json().with_defaults({{"qk_nope_head_dim", 64},
                                                           {"qk_rope_head_dim", 32},
                                                           {"v_head_dim", width / heads},
                                                           {"kv_lora_rank", 256},
                                                           {"q_lora_rank", 768}});
    ConfigMap own(filled);
    deepseek_keys(own, c, {.dense_layers = config_limits::layers});
    if (!keys.json().has("tie_word_embeddings")) c.tied_embeddings = true;
  } else {
    deepseek_keys(keys, c, {.dense_layers = config_limits::layers});
  }
  keys.number("scale_emb", c.embedding_scale, -1e6, 1e6, 12);
  double depth = c.residual_scale * std::sqrt(static_cast<double>(c.dims.layers));
  if (keys.reading() && keys.json().null("scale_depth"))
    depth = std::sqrt(static_cast<double>(c.dims.layers));
  else
    keys.number("scale_depth", depth, 1e-6, 1e6, 1.4);
  c.residual_scale = depth / std::sqrt(static_cast<double>(c.dims.layers));
  double base = c.logit_scale * c.dims.d_model;
  if (keys.reading() && keys.json().null("dim_model_base"))
    base = c.dims.d_model;
  else
    keys.number("dim_model_base", base, 1e-6, 1e9, 256);
  c.logit_scale = base / c.dims.d_model;
}
}  // namespace

Family minicpm3_family();  // declared with all others in family.cpp
Family minicpm3_family() {
  return usual_family("minicpm3", "MiniCPM3ForCausalLM",
                      to_say("keys and values of a latent, positions on a part of each head, with multipliers"),
                      &minicpm3_keys, &deepseek_names);
}

}  // namespace headscope
