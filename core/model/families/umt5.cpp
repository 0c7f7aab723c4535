// umT5 (Chung et al., UniMax: Fairer and More Effective Language Sampling for Large-Scale Multilingual Pretraining,
// 2023): T5 1.1 in which every layer learned biases of its own for the buckets of distances.

#include "core/base/words.h"
#include "core/model/families/t5.h"

namespace headscope {

namespace {
void umt5_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  t5_like(keys, decoder, encoder, "gated-gelu", true);
  decoder.buckets_by_layer = encoder.buckets_by_layer = true;
}

WeightNames umt5_names(const ModelConfig& stack) {
  WeightNames names = t5_names(stack);
  names.buckets = "layer.0.SelfAttention.relative_attention_bias";
  return names;
}
}  // namespace

Family umt5_family();  // declared with all others in family.cpp
Family umt5_family() {
  return two_stack_family("umt5", "UMT5ForConditionalGeneration",
                          to_say("an encoder-decoder: T5 1.1 with biases of distances of every layer's own"),
                          &umt5_keys, &umt5_names);
}

}  // namespace headscope
