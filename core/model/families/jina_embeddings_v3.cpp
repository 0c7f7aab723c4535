// Jina embeddings v3 (Sturua et al., jina-embeddings-v3: Multilingual Embeddings With Task LoRA, 2024): XLM-RoBERTa
// with rotary positions. Its adapters for tasks are files of their own; where they stand among the weights it does not
// open.

#include <algorithm>
#include <string>

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void jina_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.kv_heads = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  bert_like(keys, c, "hidden_act");
  keys.integer("type_vocab_size", c.segments, 1, 1 << 16, 1);
  keys.rotary(c, 20000, 1, "");
  if (keys.reading()) c.head_activation = Activation::gelu;
  keys.ends(c, true);
}

/// As transformers writes them, or as their makers do.
RawWeights jina_weights(const WeightSource& source, const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  const bool today = std::ranges::any_of(names.prefixes, [&](const std::string& prefix) {
    return source.contains(prefix + "layers.0.self_attn.o_proj.weight");
  });
  names.block = today ? "layers." : "encoder.layers.";
  names.up = "mlp.fc1", names.down = "mlp.fc2";
  if (today) {
    names.q = "self_attn.q_proj", names.k = "self_attn.k_proj", names.v = "self_attn.v_proj";
    names.o = "self_attn.o_proj";
    names.ln1 = "post_attention_layernorm", names.ln2 = "post_mlp_layernorm";
  } else {
    names.embedding_norm = "emb_ln";
    names.qkv = "mixer.Wqkv";
    names.o = "mixer.out_proj";
    names.ln1 = "norm1", names.ln2 = "norm2";
  }
  return read_usual_weights(source, c, names);
}
}  // namespace

Family jina_embeddings_v3_family();  // declared with all others in family.cpp
Family jina_embeddings_v3_family() {
  Family made = usual_family("jina_embeddings_v3", "JinaEmbeddingsV3ForMaskedLM",
                             to_say("an encoder: XLM-RoBERTa with rotary positions"), &jina_keys, &roberta_names);
  made.read_weights = &jina_weights;
  return made;
}

}  // namespace headscope
