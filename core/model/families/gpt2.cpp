// GPT-2 (Radford et al., Language Models are Unsupervised Multitask Learners, 2019): learned positions, LayerNorm
// before each sublayer, one MLP branch, biases everywhere. Matrices are stored (in, out), q, k and v side by side in
// c_attn.

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/weight_reader.h"

namespace headscope {

namespace {

ModelConfig gpt2_config(const ConfigReader& json) {
  namespace limit = config_limits;
  ModelConfig config;
  ModelDims& dims = config.dims;
  dims.layers = json.integer("n_layer", 1, limit::layers);
  dims.heads = json.integer("n_head", 1, limit::heads);
  dims.d_model = json.integer("n_embd", 1, limit::d_model);
  if (dims.d_model % dims.heads != 0) {
    throw json.error("n_head", "a divisor of n_embd = " + std::to_string(dims.d_model), std::to_string(dims.heads));
  }
  dims.kv_heads = dims.heads;
  dims.d_head = dims.d_model / dims.heads;
  dims.d_mlp = json.integer("n_inner", 0, limit::d_mlp, 4 * dims.d_model);  // 0: attention only, no second norm
  dims.vocab = json.integer("vocab_size", 1, limit::vocab);
  config.context = json.integer(json.has("n_positions") ? "n_positions" : "n_ctx", 1, limit::context);
  config.norm = NormKind::layer_norm;
  config.norm_epsilon = json.number("layer_norm_epsilon", 0, 1, 1e-5);
  config.position = PositionKind::learned;
  config.activation = read_activation(json, "activation_function", "gelu_new");
  config.gated_mlp = false;
  config.tied_embeddings = json.flag("tie_word_embeddings", true);
  config.scale_by_inverse_sqrt_d = json.flag("scale_attn_weights", true);
  config.scale_by_inverse_layer = json.flag("scale_attn_by_inverse_layer_idx", false);
  if (json.flag("add_cross_attention", false)) {
    throw json.error("add_cross_attention", "false", "true", "only decoders without an encoder can be traced");
  }
  config.bos = json.token("bos_token_id", dims.vocab);
  config.eos = json.token("eos_token_id", dims.vocab);
  return config;
}

RawWeights gpt2_weights(const WeightSource& source, const ModelConfig& config) {
  const ModelDims& dims = config.dims;
  const Index d = dims.d_model;
  RawWeights weights;
  WeightReader reader(source, {"transformer.", ""}, "wte.weight", "h.");
  reader.take("wte.weight", {dims.vocab, d}, weights.token_embedding);
  reader.take("wpe.weight", {config.context, d}, weights.position_embedding);
  weights.layers.resize(static_cast<std::size_t>(dims.layers));
  for (int layer = 0; layer < dims.layers; ++layer) {
    RawLayer& raw = nth(weights.layers, layer);
    const std::string block = "h." + std::to_string(layer) + ".";
    reader.take(block + "ln_1.weight", {d}, raw.ln1_gain);
    reader.take(block + "ln_1.bias", {d}, raw.ln1_bias);
    reader.take(block + "attn.c_attn.weight", {d, 3 * d}, [&](const Tensor& qkv) {
      raw.q_weight = qkv.slice(1, 0, d);
      raw.k_weight = qkv.slice(1, d, 2 * d);
      raw.v_weight = qkv.slice(1, 2 * d, 3 * d);
    });
    reader.take(block + "attn.c_attn.bias", {3 * d}, [&](const Tensor& qkv) {
      raw.q_bias = qkv.slice(0, 0, d);
      raw.k_bias = qkv.slice(0, d, 2 * d);
      raw.v_bias = qkv.slice(0, 2 * d, 3 * d);
    });
    reader.take(block + "attn.c_proj.weight", {d, d}, raw.o_weight);
    reader.take(block + "attn.c_proj.bias", {d}, raw.o_bias);
    if (dims.d_mlp > 0) {
      reader.take(block + "ln_2.weight", {d}, raw.ln2_gain);
      reader.take(block + "ln_2.bias", {d}, raw.ln2_bias);
      reader.take(block + "mlp.c_fc.weight", {d, dims.d_mlp}, raw.up_weight);
      reader.take(block + "mlp.c_fc.bias", {dims.d_mlp}, raw.up_bias);
      reader.take(block + "mlp.c_proj.weight", {dims.d_mlp, d}, raw.down_weight);
      reader.take(block + "mlp.c_proj.bias", {d}, raw.down_bias);
    }
    // Early checkpoints store the causal mask and its fill value as buffers.
    reader.ignore(block + "attn.bias");
    reader.ignore(block + "attn.masked_bias");
  }
  reader.take("ln_f.weight", {d}, weights.final_gain);
  reader.take("ln_f.bias", {d}, weights.final_bias);
  reader.take_unembedding("lm_head.weight", {dims.vocab, d}, config.tied_embeddings, weights);
  reader.finish(config, weights);
  return weights;
}

std::string gpt2_write(const ModelConfig& config) {
  const ModelDims& d = config.dims;
  ConfigWriter json;
  json.put("architectures", std::vector<std::string>{"GPT2LMHeadModel"});
  json.put("model_type", "gpt2");
  json.put("n_layer", d.layers);
  json.put("n_head", d.heads);
  json.put("n_embd", d.d_model);
  json.put("n_inner", d.d_mlp);
  json.put("n_positions", config.context);
  json.put("n_ctx", config.context);
  json.put("vocab_size", d.vocab);
  json.put("layer_norm_epsilon", config.norm_epsilon);
  json.put("activation_function", activation_name(config.activation));
  json.put("tie_word_embeddings", config.tied_embeddings);
  json.put("scale_attn_weights", config.scale_by_inverse_sqrt_d);
  json.put("scale_attn_by_inverse_layer_idx", config.scale_by_inverse_layer);
  json.put("bos_token_id", config.bos);
  json.put("eos_token_id", config.eos);
  return json.text();
}

}  // namespace

Family gpt2_family();  // declared with all others in family.cpp
Family gpt2_family() {
  return {"gpt2", to_say("learned positions, LayerNorm, GELU"), &gpt2_config, &gpt2_weights, &gpt2_write};
}

}  // namespace headscope
