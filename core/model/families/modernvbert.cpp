// ModernVBERT (Teiletche et al., ModernVBERT: Towards Smaller Visual Document Retrievers, 2025), of which the half that
// reads text is read: ModernBERT, with the layer before its logits under a name of its own.

#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/model/families/modernbert.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
WeightNames modernvbert_names(const ModelConfig& c) {
  WeightNames names = modernbert_names(c);
  names.head = "projection_head.dense";
  names.head_norm = "projection_head.norm";
  names.unembedding = "lm_head";
  return names;
}
}  // namespace

Family modernvbert_family();  // declared with all others in family.cpp
Family modernvbert_family() {
  Family made = text_half_family({.model_type = "modernvbert",
                                  .architecture = "ModernVBertForMaskedLM",
                                  .summary = to_say("as modernbert: the half that reads text, pictures are not read"),
                                  .types = {"modernbert"},
                                  .map = [](ConfigMap& keys, ModelConfig& c) { modernbert_like(keys, c, false); },
                                  .names = &modernvbert_names,
                                  .usual = {{"vocab_size", 50368},
                                            {"hidden_size", 768},
                                            {"intermediate_size", 1152},
                                            {"num_hidden_layers", 22},
                                            {"num_attention_heads", 12},
                                            {"max_position_embeddings", 8192}}});
  made.head_tensors = [](const ModelConfig& c) { return std::vector{modernvbert_names(c).head + ".weight"}; };
  return made;
}

}  // namespace headscope
