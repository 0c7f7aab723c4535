// Hunyuan 3 (Tencent, Hy3, 2026): as Qwen 3, behind the first layers each token through a few of many MLPs, chosen by
// sigmoids with a correction as in DeepSeek V3, and through some that take every token.

#include <algorithm>
#include <string>

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void hy_v3_keys(ConfigMap& keys, ModelConfig& c) {
  extents_of_width(keys, c, 128, {.usual_kv_heads = 8});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 11158840);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias", "mlp_bias");
  ExpertConfig& e = c.experts;
  expert_keys(keys, c, {.usual_count = 192, .usual_per_token = 8, .usual_width = 1536});
  int shared = e.shared_width / e.width;
  keys.integer("num_shared_experts", shared, 1, 1024, 1);
  e.shared_width = shared * e.width;
  e.score = RouterScore::sigmoid;
  e.correction = e.renormalized = true;
  e.own_bias = false;
  keys.number("router_scaling_factor", e.scale, 1e-6, 1e6, 2.826);
  listed_sparse_layers(keys, c, 1);
  keys.ends(c, false);
}

WeightNames hy_v3_names(const ModelConfig&) {
  WeightNames names;
  names.experts.correction = "mlp.e_score_correction_bias";
  names.layers_behind = true;
  return names;
}

/// As its makers' files have it.
WeightNames hy_v3_published(const ModelConfig& c) {
  WeightNames names = hy_v3_names(c);
  names.experts.router = "mlp.router.gate";
  names.experts.correction = "mlp.expert_bias";
  names.experts.shared = "mlp.shared_mlp.";
  return names;
}
}  // namespace

Family hy_v3_family();  // declared with all others in family.cpp
Family hy_v3_family() {
  Family made = usual_family("hy_v3", "HYV3ForCausalLM",
                             to_say("as qwen3, each token through a few of many MLPs, chosen by corrected sigmoids"),
                             &hy_v3_keys, &hy_v3_names);
  made.read_weights = [](const WeightSource& source, const ModelConfig& config) {
    const std::vector<std::string> names = source.names();
    const bool theirs = std::ranges::any_of(
        names, [](const std::string& name) { return name.find(".mlp.router.gate.") != std::string::npos; });
    return read_usual_weights(source, config, theirs ? hy_v3_published(config) : hy_v3_names(config));
  };
  return made;
}

}  // namespace headscope
