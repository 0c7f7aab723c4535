// OLMo Hybrid (Allen Institute for AI, 2026): three layers in four keep a state by the gated delta rule, behind their
// norms and at rates up to 2; the others are OLMo 3's attention, with norms behind, and of published models without
// positions.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/model/families/hybrid.h"

namespace headscope {

namespace {
namespace limit = config_limits;

/// A rope_theta of null, wherever rotations are told, is no rotation; without the key there is one.
void olmo_hybrid_positions(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) {
    const auto rope = keys.json().object("rope_parameters");
    const bool told = rope && (rope->has("rope_theta") || rope->null("rope_theta"));
    if (told ? !rope->has("rope_theta") : keys.json().null("rope_theta")) {
      c.position = PositionKind::none;
      return;
    }
  } else if (c.position == PositionKind::none) {
    ConfigWriter none;
    none.put("rope_type", "default");
    none.put("rope_theta", std::optional<std::int32_t>());
    return keys.put("rope_parameters", none);
  }
  keys.rotary(c, 10000);
}

/// What the library has where a file does not say the extents of layers with a state.
std::map<std::string, double> usual_states(const ConfigReader& json, const ModelDims& d) {
  const int groups = json.integer("linear_num_key_heads", 1, limit::heads, d.heads),
            size = json.integer("linear_key_head_dim", 1, limit::d_head, 3 * d.d_model / (4 * groups));
  std::map<std::string, double> usual{{"linear_num_key_heads", groups},
                                      {"linear_num_value_heads", d.heads},
                                      {"linear_key_head_dim", size},
                                      {"linear_value_head_dim", 2 * size}};
  if (d.layers < 4) usual["full_attention_interval"] = d.layers;  // one layer attends, however few there are
  return usual;
}

void olmo_hybrid_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.norm_place = NormPlace::behind;
  c.qk_norm = QkNorm::full_width;
  olmo_hybrid_positions(keys, c);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  bool twice = c.state_space && c.state_space->most_rate > 1;
  keys.flag("linear_allow_neg_eigval", twice, true);
  if (keys.reading()) {
    const ConfigReader filled = keys.json().with_defaults(usual_states(keys.json(), c.dims));
    ConfigMap own(filled);
    delta_states(own, c);
    if (c.state_space) {
      c.state_space->most_rate = twice ? 2 : 1;
      c.state_space->gated_epsilon = 1e-5;  // Flash Linear Attention's
    }
    for (int layer = 0; c.dims.hybrid() && layer < c.dims.layers; ++layer)
      c.dims.normed_behind.push_back(c.dims.attends(layer));
    if (!c.dims.any_attends()) c.norm_place = NormPlace::before;
  } else {
    if (!c.dims.any_attends()) c.norm_place = NormPlace::before;
    delta_states(keys, c);
  }
  keys.ends(c, false);
}

WeightNames olmo_hybrid_names(const ModelConfig&) {
  WeightNames names;
  names.ln1_post = "post_attention_layernorm";
  names.ln2_post = "post_feedforward_layernorm";
  StateSpaceNames& states = names.state_space;
  states = state_space_names("linear_attn.");
  states.q = "linear_attn.q_proj", states.k = "linear_attn.k_proj", states.v = "linear_attn.v_proj";
  states.q_convolution = "linear_attn.q_conv1d", states.k_convolution = "linear_attn.k_conv1d";
  states.v_convolution = "linear_attn.v_conv1d";
  states.gate = "linear_attn.g_proj", states.rate = "linear_attn.b_proj", states.steps = "linear_attn.a_proj";
  states.norm = "linear_attn.o_norm", states.out = "linear_attn.o_proj";
  return names;
}

/// Files as published call norms before attention and MLP otherwise. What the library writes calls so every norm that
/// it calls post_attention_layernorm, those behind attention too.
RawWeights olmo_hybrid_weights(const WeightSource& source, const ModelConfig& c) {
  const auto there = [&](int layer, const std::string& norm) {
    const std::string name = "layers." + std::to_string(layer) + "." + norm + ".weight";
    return source.contains(name) || source.contains("model." + name);
  };
  WeightNames names = olmo_hybrid_names(c);
  for (int layer = 0; layer < c.dims.layers; ++layer) {
    if (c.dims.attends(layer)) {
      if (!there(layer, names.ln1_post) && there(layer, "feedforward_layer_norm"))
        names.ln1_post = "feedforward_layer_norm";
    } else if (!there(layer, names.ln1) && there(layer, "attention_layer_norm")) {
      names.ln1 = "attention_layer_norm";
      names.ln2 = "feedforward_layer_norm";
    }
  }
  return read_usual_weights(source, c, names);
}
}  // namespace

Family olmo_hybrid_family();  // declared with all others in family.cpp
Family olmo_hybrid_family() {
  Family made = usual_family("olmo_hybrid", "OlmoHybridForCausalLM",
                             to_say("as olmo3, most layers the gated delta rule behind norms in place of attention"),
                             &olmo_hybrid_keys, &olmo_hybrid_names);
  made.read_weights = &olmo_hybrid_weights;
  return made;
}

}  // namespace headscope
