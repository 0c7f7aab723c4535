// Decoders made as ModernBERT is (Weller et al., Seq vs Seq: An Open Suite of Paired Encoders and Decoders, 2025:
// Ettin): the same blocks and the same layer before the logits, where a token sees none of the later ones.

#include "core/base/words.h"
#include "core/model/families/modernbert.h"

namespace headscope {

namespace {
WeightNames modernbert_decoder_names(const ModelConfig& c) {
  WeightNames names = modernbert_names(c);
  names.qkv = "";
  names.q = "attn.q_proj";
  names.k = "attn.k_proj";
  names.v = "attn.v_proj";
  names.head = "lm_head.dense";
  names.head_norm = "lm_head.norm";
  return names;
}
}  // namespace

Family modernbert_decoder_family();  // declared with all others in family.cpp
Family modernbert_decoder_family() {
  return usual_family(
      "modernbert-decoder", "ModernBertDecoderForCausalLM", to_say("as modernbert, a decoder"),
      [](ConfigMap& keys, ModelConfig& c) { modernbert_like(keys, c, true); }, &modernbert_decoder_names);
}

}  // namespace headscope
