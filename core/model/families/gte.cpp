// GTE (Zhang et al., mGTE: Generalized Long-Context Text Representation and Reranking Models for Multilingual Text
// Retrieval, 2024): an encoder with rotary positions, a gated MLP and norms of every sum. Its makers' files lay
// queries, keys and values in one matrix, and the two inputs of the MLP in another; transformers' keep all apart.

#include "core/model/families/gte.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/model/families/bert.h"

namespace headscope {

namespace {
/// NTK-aware scaling as its makers compute it: the pairs turn by (base · s)^(−2i/d) ÷ s^(2/d).
void read_ntk(const ConfigReader& json, const ConfigReader& scaling, ModelConfig& c, double base) {
  const double s = scaling.number("factor", 1, 1e6);
  if (scaling.has("mixed_b")) throw scaling.error("mixed_b", "null", "a number", "mixed NTK is not read");
  c.position = PositionKind::rotary;
  c.rotary.base = json.number("rope_theta", 1, 1e12, base) * s;
  c.rotary.scaling = RotaryConfig::Scaling::linear;
  c.rotary.factor = std::pow(s, 2.0 / c.dims.d_head);
}

void layers_as_today(WeightNames& names) {
  names.block = "layers.";
  names.q = "self_attn.q_proj", names.k = "self_attn.k_proj", names.v = "self_attn.v_proj";
  names.o = "self_attn.o_proj";
  names.ln1 = "post_attention_layernorm";
  names.ln2 = "post_mlp_layernorm";
  names.gate = "mlp.gate_proj", names.up = "mlp.up_proj", names.down = "mlp.down_proj";
  names.head_norm = "lm_head.layer_norm";
}

void layers_as_published(WeightNames& names, bool joined) {
  if (joined) names.qkv = "attention.qkv_proj";
  names.q = "attention.q_proj", names.k = "attention.k_proj", names.v = "attention.v_proj";
  names.o = "attention.o_proj";
  names.ln1 = "attn_ln";
  names.ln2 = "mlp_ln";
  names.gate_up = "mlp.up_gate_proj";
  names.up_first = true;
  names.down = "mlp.down_proj";
  names.head_norm = "lm_head.norm";
}

const std::vector<std::string> gte_prefixes{"gte.", "new.", ""};

RawWeights gte_weights(const WeightSource& source, const ModelConfig& c) {
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(gte_prefixes, [&](const std::string& prefix) { return source.contains(prefix + name); });
  };
  WeightNames names = bert_names("");
  names.prefixes = gte_prefixes;
  names.head = "lm_head.dense";
  names.unembedding = "lm_head.decoder";
  names.unembedding_bias = "";
  if (has("layers.0.mlp.down_proj.weight"))
    layers_as_today(names);
  else
    layers_as_published(names, has("encoder.layer.0.attention.qkv_proj.weight"));
  return read_usual_weights(source, c, names);
}
}  // namespace

void gte_keys(ConfigMap& keys, ModelConfig& c, double base) {
  keys.extents(c, {.kv_heads = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-12);
  bert_like(keys, c, "hidden_act");
  keys.integer("type_vocab_size", c.segments, 0, 1 << 16, 1);
  const auto scaling = keys.reading() ? keys.json().object("rope_scaling") : std::nullopt;
  if (scaling && scaling->text("type", "") == "ntk")
    read_ntk(keys.json(), *scaling, c, base);
  else
    keys.rotary(c, base, 1, "");
  keys.only("logn_attention_scale", false, "scores that grow with the text are not read");
  keys.only("logn_attention_clip1", false, "scores that grow with the text are not read");
  if (keys.reading()) {
    const ConfigReader& json = keys.json();
    for (const auto& [key, only] : {std::pair("position_embedding_type", "rope"), {"layer_norm_type", "layer_norm"}})
      if (const std::string found = json.text(key, only); found != only)
        throw json.error(key, std::string("\"") + only + "\"", "\"" + found + "\"", "nothing else is read");
    c.gated_mlp = true;
    c.bias.up = false;
  }
  keys.ends(c, true);
}

Family gte_like(std::string model_type, std::string architecture, std::string summary,
                void (*map)(ConfigMap& keys, ModelConfig& c)) {
  Family made = usual_family(std::move(model_type), std::move(architecture), std::move(summary), map, &usual_names);
  made.read_weights = &gte_weights;
  made.head_tensors = [](const ModelConfig&) { return std::vector<std::string>{"lm_head.dense.weight"}; };
  return made;
}

Family gte_family();  // declared with all others in family.cpp
Family gte_family() {
  return gte_like("gte", "GteForMaskedLM", to_say("an encoder: rotary positions, gated MLP, norms of every sum"),
                  [](ConfigMap& keys, ModelConfig& c) {
                    gte_keys(keys, c, 160000);
                    if (keys.reading()) c.head_activation = Activation::gelu;
                  });
}

}  // namespace headscope
