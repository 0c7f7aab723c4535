// GPT (Radford et al., Improving Language Understanding by Generative Pre-Training, 2018): norms of the stream itself,
// behind attention and MLP, learned positions. Matrices are stored (in, out).

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void openai_gpt_keys(ConfigMap& keys, ModelConfig& c) {
  ConfigMap::Extents extents = gpt2_extents();
  extents.mlp = "";
  keys.extents(c, extents);
  keys.norm(c, NormKind::layer_norm, "layer_norm_epsilon", 1e-5);
  c.norm_place = NormPlace::after_sum;
  c.position = PositionKind::learned;
  std::string function = c.activation == Activation::relu ? "relu" : c.activation == Activation::silu ? "silu" : "gelu";
  keys.text("afn", function, "gelu");
  if (keys.reading())  // its "gelu" is the approximation by tanh
    c.activation = keys.json().choice<Activation>("afn", function,
                                                  {{"gelu", Activation::gelu_tanh},
                                                   {"relu", Activation::relu},
                                                   {"silu", Activation::silu},
                                                   {"swish", Activation::silu}});
  keys.ends(c, true);
}

WeightNames openai_gpt_names(const ModelConfig&) {
  WeightNames names = gpt2_names();
  names.embedding = "tokens_embed";
  names.positions = "positions_embed";
  names.qkv = "attn.c_attn";
  names.o = "attn.c_proj";
  names.ln2 = "ln_2";
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  names.ignored = {"attn.bias"};
  return names;
}

/// The matrices of the blocks (out, in), as usual_weights.h asks for them.
class OutputsFirst final : public WeightSource {
 public:
  explicit OutputsFirst(const WeightSource& stored) : stored_(stored) {}
  std::string where() const override { return stored_.where(); }
  std::vector<std::string> names() const override { return stored_.names(); }
  bool contains(const std::string& name) const override { return stored_.contains(name); }
  std::string dtype(const std::string& name) const override { return stored_.dtype(name); }
  Tensor take(const std::string& name, const Shape& shape) const override {
    for (const char* matrix : {".c_attn.weight", ".c_proj.weight", ".c_fc.weight"})
      if (name.ends_with(matrix)) return stored_.take(name, {shape[1], shape[0]}).transpose(0, 1);
    return stored_.take(name, shape);
  }

 private:
  const WeightSource& stored_;
};
}  // namespace

Family openai_gpt_family();  // declared with all others in family.cpp
Family openai_gpt_family() {
  Family made = usual_family("openai-gpt", "OpenAIGPTLMHeadModel",
                             to_say("learned positions, norms of the stream itself, GELU: the first GPT"),
                             &openai_gpt_keys, &openai_gpt_names);
  made.read_weights = [](const WeightSource& source, const ModelConfig& config) {
    return read_usual_weights(OutputsFirst(source), config, openai_gpt_names(config));
  };
  return made;
}

}  // namespace headscope
