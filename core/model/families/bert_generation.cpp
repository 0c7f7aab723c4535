// BertGeneration (Rothe et al., Leveraging Pre-trained Checkpoints for Sequence Generation Tasks, 2020): BERT without
// segments, whose logits are read off the stream itself; alone as an encoder, or as a decoder without a source.

#include <algorithm>
#include <string>

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void bert_generation_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.kv_heads = "", .d_head = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-12);
  bert_like(keys, c, "hidden_act");
  bool writes = c.causal;
  keys.flag("is_decoder", writes, false);
  keys.only("add_cross_attention", false, "attention to a second text is not read in this family");
  if (keys.reading()) {
    c.causal = writes;
    c.head_layer = false;
    const auto classes = keys.json().texts("architectures");
    c.predicts =
        classes && std::ranges::any_of(*classes, [](const std::string& name) { return name.ends_with("Decoder"); });
  }
  keys.ends(c, true);
}

WeightNames bert_generation_names(const ModelConfig&) {
  WeightNames names = bert_names("bert.");
  names.unembedding = "lm_head.decoder";
  names.unembedding_bias = "lm_head.bias";
  return names;
}
}  // namespace

Family bert_generation_family();  // declared with all others in family.cpp
Family bert_generation_family() {
  return usual_family("bert-generation", "BertGenerationDecoder",
                      to_say("BERT without segments, as an encoder or to write with"), &bert_generation_keys,
                      &bert_generation_names);
}

}  // namespace headscope
