// Nomic's BERT (Nussbaum et al., Nomic Embed: Training a Reproducible Long Context Text Embedder, 2024): rotary
// positions, gated MLPs, no biases but the norms', which stand behind every sum.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
/// Of the files that its makers published, whose keys are GPT-2's: what this family does, and what else they could say.
void published_keys(ConfigMap& keys, ModelConfig& c) {
  ConfigMap::Extents names = gpt2_extents();
  keys.extents(c, names);
  keys.norm(c, NormKind::layer_norm, "layer_norm_epsilon", 1e-12);
  for (const char* key : {"causal", "prenorm", "parallel_block", "use_rms_norm", "qkv_proj_bias", "mlp_fc1_bias",
                          "mlp_fc2_bias", "rotary_emb_interleaved", "scale_attn_by_inverse_layer_idx"})
    keys.only(key, false, "nothing but this is read in this family");
  keys.only("scale_attn_weights", true, "scores that are not divided by √d_head are not read in this family");
  const ConfigReader& json = keys.json();
  for (const char* key : {"rotary_scaling_factor", "rotary_emb_scale_base"})
    if (json.has(key)) throw json.error(key, "null", "a number", "scaled rotations are not read in this family");
  const std::string function = json.text("activation_function", "swiglu");
  c.activation = json.choice<Activation>("activation_function", function,
                                         {{"swiglu", Activation::silu}, {"geglu", Activation::gelu}});
  keys.rotary(c, 10000, 1, "rotary_emb_fraction", "rotary_emb_base");
}

void nomic_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) c.bias = BiasSet::none();
  if (keys.reading() && keys.json().has("n_embd")) {
    published_keys(keys, c);
  } else {
    keys.extents(c, {.kv_heads = ""});
    keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-12);
    keys.activation("hidden_act", c.activation, "silu");
    keys.rotary(c, 1000, 1, "");
  }
  keys.integer("type_vocab_size", c.segments, 0, 1 << 16, 2);
  if (keys.reading()) {
    c.causal = false;
    c.gated_mlp = true;
    c.bias.norm = true;
    c.norm_place = NormPlace::after_sum;
    c.embedding_norm = c.norm_of_embeddings = true;
    c.head_layer = true;
    c.head_activation = c.activation;
    c.bias.unembedding = true;
    keys.predicts(c);
  }
  keys.ends(c, true);
}

WeightNames nomic_names(const ModelConfig&) {
  WeightNames names = bert_names("nomic_bert.");
  names.embedding_norm = "emb_ln";
  names.block = "encoder.layers.";
  names.qkv = "attn.Wqkv";
  names.o = "attn.out_proj";
  names.ln1 = "norm1";
  names.ln2 = "norm2";
  names.up = "mlp.fc11";
  names.gate = "mlp.fc12";
  names.down = "mlp.fc2";
  names.head_norm = "cls.predictions.transform.layer_norm";
  return names;
}
}  // namespace

Family nomic_bert_family();  // declared with all others in family.cpp
Family nomic_bert_family() {
  return usual_family("nomic_bert", "NomicBertForMaskedLM",
                      to_say("an encoder: rotary positions, gated MLP, norms of every sum"), &nomic_keys, &nomic_names);
}

}  // namespace headscope
