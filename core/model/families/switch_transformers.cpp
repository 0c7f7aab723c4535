// Switch Transformers (Fedus et al., Switch Transformers: Scaling to Trillion Parameter Models with Simple and
// Efficient Sparsity, 2022): T5, some of whose MLPs are many, of which one takes each token. Of a text an expert takes
// only the first so many tokens that come to it.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/t5.h"

namespace headscope {

namespace {
/// The layers of `of` that have experts where the file says that `sparse` have: every so manieth. As the library counts
/// them, one of two or more has some where it says 0, and none where it says more than there are.
std::vector<bool> layers_with_experts(int of, int sparse) {
  const int step = sparse > 0 ? of / sparse : of;
  std::vector<bool> out;
  for (int layer = 0; layer < of; ++layer) out.push_back(step == 1 || (step > 0 && layer % step == 1));
  return out;
}

void switch_stack(ConfigMap& keys, ModelConfig& c, const std::string& side, int layers) {
  ExpertConfig& e = c.experts;
  const std::string key = "num_sparse_" + side + "_layers", step_key = side + "_sparse_step";
  int sparse = 0;
  const auto all = [&] {
    std::vector<bool> own = e.layers;
    if (own.empty()) own.assign(static_cast<std::size_t>(layers), e.count > 0);
    return own;
  };
  while (!keys.reading() && layers_with_experts(layers, sparse) != all()) ++sparse;
  keys.integer(key, sparse, 0, config_limits::layers, 3);
  if (!keys.reading()) return;
  const int step = sparse > 0 ? layers / sparse : layers;
  if (const int told = keys.json().integer(step_key, 0, config_limits::layers, step); told != step)
    throw keys.json().error(step_key, std::to_string(step) + ", of so many layers with experts", std::to_string(told),
                            "the two keys say different layers");
  e.layers = layers_with_experts(layers, sparse);
  if (!e.anywhere()) c.dims.experts = 0;
  if (!e.leaves_dense(layers)) e.layers.clear();
}

void switch_transformers_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  for (ModelConfig* c : {&decoder, &encoder}) {  // num_layers is the encoder's
    t5_stack(keys, *c);
    keys.activation("dense_act_fn", c->activation, "relu");
    ExpertConfig& e = c->experts;
    e.per_token = 1;
    keys.integer("num_experts", e.count, 1, 4096, 8);
    keys.integer("expert_capacity", e.capacity, 1, 1 << 24, 64);
    keys.flag("router_bias", e.router_bias, false);
    e.width = c->dims.d_mlp;
    if (keys.reading()) c->dims.experts = e.count;
  }
  keys.integer("num_decoder_layers", decoder.dims.layers, 1, config_limits::layers, encoder.dims.layers);
  switch_stack(keys, decoder, "decoder", decoder.dims.layers);
  switch_stack(keys, encoder, "encoder", encoder.dims.layers);
  if (keys.reading() && keys.json().text("router_dtype", "float32") != "float32")
    throw keys.json().error("router_dtype", "\"float32\"", "\"" + keys.json().text("router_dtype") + "\"",
                            "routers that round what they read are not followed");
  keys.flag("tie_word_embeddings", decoder.tied_embeddings, true);
  if (keys.reading()) {
    // Nothing is tied then: either stack has a table of its own.
    decoder.shared_embedding = encoder.tied_embeddings = decoder.tied_embeddings;
    if (decoder.tied_embeddings) decoder.logit_scale = 1 / std::sqrt(static_cast<double>(decoder.dims.d_model));
  }
  start_token(keys, decoder, 0);
}

WeightNames switch_transformers_names(const ModelConfig& stack) {
  WeightNames names = t5_names(stack);
  if (!stack.tied_embeddings) std::ranges::reverse(names.embeddings);
  const std::string mlp = stack.cross() ? "layer.2.mlp." : "layer.1.mlp.";
  names.up = mlp + "wi";
  names.down = mlp + "wo";
  names.ln2 = stack.cross() ? "layer.2.layer_norm" : "layer.1.layer_norm";
  names.experts.router = mlp + "router.classifier";
  names.experts.expert = mlp + "experts.expert_";
  names.experts.up = "wi", names.experts.down = "wo";
  return names;
}
}  // namespace

Family switch_transformers_family();  // declared with all others in family.cpp
Family switch_transformers_family() {
  return two_stack_family("switch_transformers", "SwitchTransformersForConditionalGeneration",
                          to_say("an encoder-decoder: T5, in some layers each token through one of many MLPs"),
                          &switch_transformers_keys, &switch_transformers_names);
}

}  // namespace headscope
