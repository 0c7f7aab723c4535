// SqueezeBERT (Iandola et al., SqueezeBERT: What can computer vision teach NLP about efficient neural networks?, 2020):
// BERT whose products, convolutions over one token, have groups of inputs that make groups of outputs.

#include <fmt/format.h>

#include <string>
#include <tuple>

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void squeezebert_keys(ConfigMap& keys, ModelConfig& c) {
  bert_keys(keys, c);
  if (c.norm_epsilon != 1e-12)  // the embeddings' norm would have it, those of the blocks not
    throw keys.json().error("layer_norm_eps", "1e-12", fmt::format("{}", c.norm_epsilon),
                            "in this family the norms of blocks have that, whatever the file says");
  ProductGroups& g = c.groups;
  const int d = c.dims.d_model, m = c.dims.d_mlp;
  for (const auto& [key, groups, usual, into, out] : {std::tuple("q_groups", &g.q, 4, d, d),
                                                      {"k_groups", &g.k, 4, d, d},
                                                      {"v_groups", &g.v, 4, d, d},
                                                      {"post_attention_groups", &g.o, 1, d, d},
                                                      {"intermediate_groups", &g.up, 4, d, m},
                                                      {"output_groups", &g.down, 4, m, d}}) {
    keys.integer(key, *groups, 1, config_limits::d_model, usual);
    if (into % *groups != 0 || out % *groups != 0)
      throw keys.json().error(key, fmt::format("a divisor of {} inputs and {} outputs", into, out),
                              std::to_string(*groups));
  }
  int width = d;
  keys.integer("embedding_size", width, 1, config_limits::d_model, 768);
  if (width != d)
    throw keys.json().error("embedding_size", fmt::format("hidden_size = {}", d), std::to_string(width),
                            "embeddings of a width of their own are not read in this family");
}

WeightNames squeezebert_names(const ModelConfig&) {
  WeightNames names = bert_names("transformer.");
  names.kernels = true;
  names.block = "encoder.layers.";
  names.q = "attention.query", names.k = "attention.key", names.v = "attention.value";
  names.o = "post_attention.conv1d";
  names.ln1 = "post_attention.layernorm";
  names.up = "intermediate.conv1d";
  names.down = "output.conv1d";
  names.ln2 = "output.layernorm";
  return names;
}
}  // namespace

Family squeezebert_family();  // declared with all others in family.cpp
Family squeezebert_family() {
  return usual_family("squeezebert", "SqueezeBertForMaskedLM",
                      to_say("an encoder: BERT whose products have groups of inputs and outputs"), &squeezebert_keys,
                      &squeezebert_names);
}

}  // namespace headscope
