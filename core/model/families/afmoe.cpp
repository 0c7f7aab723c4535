// AFMoE (Arcee AI, Arcee Trinity Large Technical Report, 2026): norms before and behind attention and MLP, queries and
// keys normalised head by head, a sigmoid gate on what every head puts out; three layers in four with a window, which
// alone are rotated; behind the first layers each token passes through a few of many MLPs, chosen by sigmoids.

#include <cmath>

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void afmoe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.norm_place = NormPlace::both;
  c.qk_norm = QkNorm::per_head;
  c.output_gate = true;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  int every = 4;
  keys.integer("global_attn_every_n_layers", every, 1, config_limits::layers, 4);
  int window = 0;
  if (keys.reading() && !keys.json().null("sliding_window"))
    window = keys.json().integer("sliding_window", 0, config_limits::context, 1024);
  keys.layer_types(c, window, [&](int layer) { return (layer + 1) % every != 0; });
  if (keys.reading())
    for (int layer = 0; layer < c.dims.layers; ++layer) c.layer_turns.push_back(c.window(layer) > 0);
  ExpertConfig& e = c.experts;
  expert_keys(keys, c, {.count_too = "", .usual_count = 64, .usual_per_token = 6, .usual_width = 1408});
  int shared = e.width > 0 ? e.shared_width / e.width : 0;
  first_layers_dense(keys, c, "num_dense_layers", 1);
  keys.integer("num_shared_experts", shared, 0, 64, 2);
  e.shared_width = shared * e.width;
  keys.number("route_scale", e.scale, -1e6, 1e6, 1);
  e.score = RouterScore::sigmoid;
  e.correction = e.renormalized = true;
  bool scaled = c.embedding_scale != 1;
  keys.flag("mup_enabled", scaled, false);
  if (keys.reading() && scaled) c.embedding_scale = std::sqrt(static_cast<double>(c.dims.d_model));
  if (keys.reading()) {
    deepseek_only(keys, "score_func", "sigmoid");
    keys.only("route_norm", true, "the library divides weights of experts by their sum, whatever this says");
  }
  keys.ends(c, false);
}

WeightNames afmoe_names(const ModelConfig&) {
  WeightNames names;
  names.ln1_post = "post_attention_layernorm";
  names.ln2 = "pre_mlp_layernorm";
  names.ln2_post = "post_mlp_layernorm";
  names.z_gate = "self_attn.gate_proj";
  names.experts.router = "mlp.router.gate";
  names.experts.correction = "mlp.expert_bias";
  return names;
}
}  // namespace

Family afmoe_family();  // declared with all others in family.cpp
Family afmoe_family() {
  return usual_family(
      "afmoe", "AfmoeForCausalLM",
      to_say("a gate on what every head puts out, norms before and behind, layers without window without "
             "positions, each token through a few of many MLPs"),
      &afmoe_keys, &afmoe_names);
}

}  // namespace headscope
