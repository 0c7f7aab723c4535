// MPT (MosaicML, Introducing MPT-7B, 2023): ALiBi with slopes of its own where heads are no power of two, and no
// biases.

#include <bit>
#include <cmath>

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
/// 2^(−8 h ÷ H), h = 1 … H, for the next power of two H; of more than there are heads, first every second one.
std::vector<double> mpt_slopes(int heads) {
  const int whole = static_cast<int>(std::bit_ceil(static_cast<unsigned>(heads)));
  std::vector<double> all, slopes;
  for (int h = 1; h <= whole; ++h) all.push_back(std::exp2(-8.0 * h / whole));
  if (whole == heads) return all;
  for (const std::size_t from : {1, 0})
    for (std::size_t i = from; i < all.size() && static_cast<int>(slopes.size()) < heads; i += 2)
      slopes.push_back(all[i]);
  return slopes;
}

/// The object attn_config: the score scale and what is clipped.
void attention_keys(ConfigMap& keys, ModelConfig& c) {
  if (!keys.reading()) {
    ConfigWriter nested;
    nested.put("alibi", true);
    nested.put("alibi_bias_max", 8);
    if (c.score_scale) nested.put("softmax_scale", *c.score_scale);
    if (c.clip_qkv > 0) nested.put("clip_qkv", c.clip_qkv);
    return keys.put("attn_config", nested);
  }
  if (const auto nested = keys.json().object("attn_config")) {
    (void)nested->integer("alibi_bias_max", 8, 8, 8);  // what Hugging Face's own class takes whatever the file says
    c.clip_qkv = nested->number("clip_qkv", 0, 1e6, 0);
    if (nested->has("softmax_scale")) c.score_scale = nested->number("softmax_scale", 1e-9, 1e6);
    for (const auto& [key, known] : {std::pair{"alibi", true}, {"prefix_lm", false}, {"qk_ln", false}})
      if (nested->flag(key, known) != known)
        throw nested->error(key, known ? "true" : "false", known ? "false" : "true", "MPT's other forms are not read");
  }
  c.alibi_slopes = mpt_slopes(c.dims.heads);
}

void mpt_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.layers = "n_layers",
                   .heads = "n_heads",
                   .kv_heads = "",
                   .width = "d_model",
                   .d_head = "",
                   .mlp = "",
                   .context = "max_seq_len",
                   .mlp_factor = 4});
  int factor = 4;
  keys.integer("expansion_ratio", factor, 4, 4, 4);  // what Hugging Face's own class takes whatever the file says
  keys.norm(c, NormKind::layer_norm, "layer_norm_epsilon", 1e-5);
  c.position = PositionKind::alibi;
  c.activation = Activation::gelu;
  c.bias = BiasSet::none();
  attention_keys(keys, c);
  // What the file calls logit_scale and learned_pos_emb, its own library leaves alone.
  if (keys.reading()) (void)(keys.json().has("logit_scale") && keys.json().has("learned_pos_emb"));
  keys.ends(c, true);
}

WeightNames mpt_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"transformer.", ""};
  names.embedding = "wte";
  names.block = "blocks.";
  names.ln1 = "norm_1";
  names.ln2 = "norm_2";
  names.qkv = "attn.Wqkv";
  names.o = "attn.out_proj";
  names.up = "ffn.up_proj";
  names.down = "ffn.down_proj";
  names.final_norm = "norm_f";
  return names;
}
}  // namespace

Family mpt_family();  // declared with all others in family.cpp
Family mpt_family() {
  return usual_family("mpt", "MptForCausalLM", to_say("ALiBi, no biases, exact GELU"), &mpt_keys, &mpt_names);
}

}  // namespace headscope
