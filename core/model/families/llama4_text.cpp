// Llama 4, text (Meta, The Llama 4 Herd, 2025): three layers in four rotate, normalise queries and keys behind that and
// see their own chunk of the text; the fourth has no positions and sees all, its queries grow along the text. Each
// token passes one expert, which reads it times its weight, and one that all pass.

#include "core/model/families/llama4.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/model/expert_keys.h"

namespace headscope {

namespace {
/// "chunked_attention" or "full_attention" of every layer; where the list is absent, layers that rotate have chunks.
void llama4_chunks(ConfigMap& keys, ModelConfig& c) {
  int chunk = 0;
  for (const int each : c.chunks) chunk = std::max(chunk, each);
  if (!keys.reading()) {
    std::vector<std::string> types;
    for (int layer = 0; layer < c.dims.layers; ++layer)
      types.emplace_back(c.chunk(layer) > 0 ? "chunked_attention" : "full_attention");
    keys.put("layer_types", types);
    return keys.optional("attention_chunk_size", chunk);
  }
  const ConfigReader& json = keys.json();
  chunk = json.null("attention_chunk_size") ? 0 : json.integer("attention_chunk_size", 1, config_limits::context, 8192);
  const auto types = json.texts("layer_types");
  if (types && static_cast<int>(types->size()) != c.dims.layers)
    throw json.error("layer_types", fmt::format("a kind for each of {} layers", c.dims.layers),
                     std::to_string(types->size()));
  bool any = false;
  for (int layer = 0; layer < c.dims.layers; ++layer) {
    const bool own = types ? json.choice<bool>("layer_types", (*types)[static_cast<std::size_t>(layer)],
                                               {{"chunked_attention", true}, {"full_attention", false}})
                           : c.turns(layer) && chunk > 0;
    if (own && chunk == 0)
      throw json.error("attention_chunk_size", "a number of tokens for the chunked layers", "none");
    c.chunks.push_back(own ? chunk : 0);
    any = any || own;
  }
  if (!any) c.chunks.clear();
}

/// moe_layers, or every interleave_moe_layer_step-th layer.
void llama4_experts(ConfigMap& keys, ModelConfig& c) {
  ExpertConfig& e = c.experts;
  expert_keys(keys, c,
              {.count = "num_local_experts",
               .count_too = "",
               .width = "intermediate_size",
               .usual_count = 16,
               .usual_per_token = 1,
               .usual_width = 8192});
  e.shared_width = e.width;
  e.score = RouterScore::sigmoid;
  e.weigh_input = true;
  if (!keys.reading()) {
    std::vector<int> sparse;
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (e.at(layer)) sparse.push_back(layer);
    return keys.put("moe_layers", sparse);
  }
  const auto sparse = keys.json().integers("moe_layers", 0, config_limits::layers);
  const int step = keys.json().integer("interleave_moe_layer_step", 1, config_limits::layers, 1);
  for (int layer = 0; layer < c.dims.layers; ++layer)
    e.layers.push_back(sparse ? std::ranges::count(*sparse, layer) > 0 : (layer + 1) % step == 0);
  if (!e.anywhere()) c.dims.experts = 0;
  if (std::ranges::count(e.layers, false) == 0) e.layers.clear();
}

/// A switch, which files of 2025 write as a number.
bool llama4_grows(const ConfigReader& json) {
  const char* const key = "attn_temperature_tuning";
  try {
    return json.flag(key, true);
  } catch (const Error&) {
    return json.integer(key, 0, 1 << 20) != 0;
  }
}
}  // namespace

void llama4_text_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.mlp = "intermediate_size_mlp"});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.rotary.layout = RotaryLayout::interleaved;
  keys.rotary(c, 500000);
  keys.layers_that_turn("no_rope_layers", c, 4);
  llama4_chunks(keys, c);
  bool normed = keys.reading() || c.qk_norm != QkNorm::none;
  keys.flag("use_qk_norm", normed, true);
  if (normed) {
    c.qk_norm = QkNorm::per_head;
    c.norm_after_rotation = c.qk_norm_turned = true;
    c.qk_norm_weights = false;
  }
  if (keys.reading()) {
    if (llama4_grows(keys.json())) {
      c.unturned_growth = keys.json().number("attn_scale", 0, 1e3, 0.1);
      c.unturned_floor = keys.json().integer("floor_scale", 1, config_limits::context, 8192);
    }
  } else {
    bool grows = c.unturned_growth > 0;
    keys.flag("attn_temperature_tuning", grows, true);
    if (grows) {
      keys.number("attn_scale", c.unturned_growth, 0, 1e3);
      keys.integer("floor_scale", c.unturned_floor, 1, config_limits::context);
    }
  }
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  llama4_experts(keys, c);
  keys.ends(c, false);
}

WeightNames llama4_names(const ModelConfig&) {
  WeightNames names;
  names.gate = "feed_forward.gate_proj", names.up = "feed_forward.up_proj", names.down = "feed_forward.down_proj";
  names.experts.router = "feed_forward.router";
  names.experts.expert = "feed_forward.experts.";
  names.experts.shared = "feed_forward.shared_expert.";
  names.experts.gate_up_of_all = "feed_forward.experts.gate_up_proj";
  names.experts.down_of_all = "feed_forward.experts.down_proj";
  names.experts.halves = true;
  return names;
}

Family llama4_text_family();  // declared with all others in family.cpp
Family llama4_text_family() {
  return usual_family("llama4_text", "Llama4ForCausalLM",
                      to_say("layers of chunks that rotate, layers of all without positions, one expert of many"),
                      &llama4_text_keys, &llama4_names);
}

}  // namespace headscope
