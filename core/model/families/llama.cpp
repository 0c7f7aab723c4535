// Llama (Touvron et al., LLaMA, 2023; Grattafiori et al., The Llama 3 Herd of Models, 2024): rotary positions in the
// half-split layout, RMSNorm before each sublayer, grouped-query attention, gated MLP. Matrices are stored (out, in).

#include <fmt/format.h>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/config_map.h"
#include "core/model/family.h"
#include "core/model/weight_reader.h"

namespace headscope {

namespace {

ModelConfig llama_config(const ConfigReader& json) {
  namespace limit = config_limits;
  ModelConfig config;
  ModelDims& dims = config.dims;
  dims.layers = json.integer("num_hidden_layers", 1, limit::layers);
  dims.heads = json.integer("num_attention_heads", 1, limit::heads);
  dims.kv_heads = json.integer("num_key_value_heads", 1, limit::heads, dims.heads);
  if (dims.heads % dims.kv_heads != 0) {
    throw json.error("num_key_value_heads", "a divisor of num_attention_heads = " + std::to_string(dims.heads),
                     std::to_string(dims.kv_heads));
  }
  dims.d_model = json.integer("hidden_size", 1, limit::d_model);
  if (!json.has("head_dim") && dims.d_model % dims.heads != 0) {
    throw json.error("num_attention_heads", "a divisor of hidden_size = " + std::to_string(dims.d_model),
                     std::to_string(dims.heads), "or a head_dim of its own");
  }
  dims.d_head = json.integer("head_dim", 1, limit::d_head, dims.d_model / dims.heads);
  if (dims.d_head % 2 != 0) {
    throw json.error(json.has("head_dim") ? "head_dim" : "hidden_size / num_attention_heads",
                     "an even number, since rotary positions turn pairs", std::to_string(dims.d_head));
  }
  dims.d_mlp = json.integer("intermediate_size", 0, limit::d_mlp);  // 0: attention only, no second norm
  dims.vocab = json.integer("vocab_size", 1, limit::vocab);
  config.context = json.integer("max_position_embeddings", 1, limit::context);
  config.norm = NormKind::rms_norm;
  config.norm_epsilon = json.number("rms_norm_eps", 0, 1, 1e-6);
  ConfigMap(json).rotary(config, 10000);
  if (config.rotary.width > 0)
    throw json.error("partial_rotary_factor", "1", fmt::format("{} of {} dimensions", config.rotary.width, dims.d_head),
                     "a Llama turns whole heads");
  config.activation = read_activation(json, "hidden_act", "silu");
  config.gated_mlp = dims.d_mlp > 0;
  config.bias = BiasSet::none();
  config.bias.q = config.bias.k = config.bias.v = config.bias.o = json.flag("attention_bias", false);
  config.bias.up = config.bias.down = json.flag("mlp_bias", false);
  config.tied_embeddings = json.flag("tie_word_embeddings", false);
  config.bos = json.token("bos_token_id", dims.vocab);
  config.eos = json.token("eos_token_id", dims.vocab);
  return config;
}

RawWeights llama_weights(const WeightSource& source, const ModelConfig& config) {
  const ModelDims& dims = config.dims;
  const Index d = dims.d_model, queries = Index{dims.heads} * dims.d_head, keys = Index{dims.kv_heads} * dims.d_head;
  RawWeights weights;
  WeightReader reader(source, {"model.", ""}, "embed_tokens.weight", "layers.");
  reader.take("embed_tokens.weight", {dims.vocab, d}, weights.token_embedding);
  weights.layers.resize(static_cast<std::size_t>(dims.layers));
  for (int layer = 0; layer < dims.layers; ++layer) {
    RawLayer& raw = nth(weights.layers, layer);
    const std::string block = "layers." + std::to_string(layer) + ".";
    const auto linear = [&](const std::string& name, Index in, Index out, bool bias, Tensor& weight,
                            Tensor& into_bias) {
      reader.take_transposed(block + name + ".weight", in, out, weight);
      if (bias) reader.take(block + name + ".bias", {out}, into_bias);
    };
    reader.take(block + "input_layernorm.weight", {d}, raw.ln1_gain);
    linear("self_attn.q_proj", d, queries, config.bias.q, raw.q_weight, raw.q_bias);
    linear("self_attn.k_proj", d, keys, config.bias.q, raw.k_weight, raw.k_bias);
    linear("self_attn.v_proj", d, keys, config.bias.q, raw.v_weight, raw.v_bias);
    linear("self_attn.o_proj", queries, d, config.bias.q, raw.o_weight, raw.o_bias);
    if (dims.d_mlp > 0) {
      reader.take(block + "post_attention_layernorm.weight", {d}, raw.ln2_gain);
      linear("mlp.up_proj", d, dims.d_mlp, config.bias.up, raw.up_weight, raw.up_bias);
      linear("mlp.gate_proj", d, dims.d_mlp, config.bias.up, raw.gate_weight, raw.gate_bias);
      linear("mlp.down_proj", dims.d_mlp, d, config.bias.up, raw.down_weight, raw.down_bias);
    }
    // Early checkpoints store the rotary frequencies, which the configuration gives.
    reader.ignore(block + "self_attn.rotary_emb.inv_freq");
  }
  reader.take("norm.weight", {d}, weights.final_gain);
  reader.take_unembedding("lm_head.weight", {dims.vocab, d}, config.tied_embeddings, weights);
  reader.finish(config, weights);
  return weights;
}

std::string llama_write(const ModelConfig& config) {
  const ModelDims& d = config.dims;
  ConfigWriter json;
  json.put("architectures", std::vector<std::string>{"LlamaForCausalLM"});
  json.put("model_type", "llama");
  json.put("num_hidden_layers", d.layers);
  json.put("num_attention_heads", d.heads);
  json.put("num_key_value_heads", d.kv_heads);
  json.put("hidden_size", d.d_model);
  json.put("head_dim", d.d_head);
  json.put("intermediate_size", d.d_mlp);
  json.put("max_position_embeddings", config.context);
  json.put("vocab_size", d.vocab);
  json.put("rms_norm_eps", config.norm_epsilon);
  json.put("hidden_act", activation_name(config.activation));
  json.put("attention_bias", config.bias.q);
  json.put("mlp_bias", config.bias.up);
  json.put("tie_word_embeddings", config.tied_embeddings);
  const RotaryConfig& r = config.rotary;
  json.put("rope_theta", r.base);
  if (r.scaling != RotaryConfig::Scaling::none) json.put("rope_scaling", ConfigMap::written(r, d.d_head));
  json.put("bos_token_id", config.bos);
  json.put("eos_token_id", config.eos);
  return json.text();
}

}  // namespace

Family llama_family();  // declared with all others in family.cpp
Family llama_family() {
  return {"llama", to_say("rotary positions, RMSNorm, grouped queries, gated MLP"), &llama_config, &llama_weights,
          &llama_write};
}

}  // namespace headscope
