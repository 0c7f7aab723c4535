// Gemma 4, text (Gemma Team, Gemma 4, 2026): Gemma 3 with a norm on values too; layers without a window have wider
// heads, of which a part turns ("proportional"), and, in large ones, values that are keys before their norm; late
// layers read keys and values of the last one of their kind before them. Small ones give every layer an input of its
// own for each token (Gemma 3n); one has experts beside its MLPs.

#include "core/model/families/gemma4.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/gemma.h"

namespace headscope {

namespace {
/// kv_heads and d_head of the layers without a window: per_layer_config of newer files, or global_head_dim and
/// num_global_key_value_heads of older ones. d_mlp of those that read another's keys may be twice that of the others.
void gemma4_widths(ConfigMap& keys, ModelConfig& c, bool shared_values) {
  const auto full = [&](int layer) { return c.window(layer) == 0; };
  if (!keys.reading()) {
    ConfigWriter all;
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (full(layer)) {
        ConfigWriter own;
        own.put("head_dim", c.dims.widths_of(layer).d_head);
        own.put("num_key_value_heads", c.dims.widths_of(layer).kv_heads);
        all.put(std::to_string(layer), own);
      }
    return keys.put("per_layer_config", all);
  }
  const ConfigReader& json = keys.json();
  LayerWidths wide{c.dims.kv_heads, c.dims.d_head, c.dims.d_mlp};
  const auto read = [&](const ConfigReader& from, const char* heads, const char* width, int usual) {
    wide.d_head = from.integer(width, 2, config_limits::d_head, usual);
    wide.kv_heads = from.integer(heads, 1, config_limits::heads, c.dims.kv_heads);
    if (c.dims.heads % wide.kv_heads != 0)
      throw from.error(heads, fmt::format("a divisor of num_attention_heads = {}", c.dims.heads),
                       std::to_string(wide.kv_heads));
  };
  const auto by_layer = json.object("per_layer_config");
  if (!by_layer && shared_values)
    read(json, "num_global_key_value_heads", "global_head_dim", 512);
  else if (!by_layer)
    wide.d_head = json.integer("global_head_dim", 2, config_limits::d_head, 512);
  if (!by_layer) (void)json.has("num_global_key_value_heads");  // which counts where values are keys
  bool first = true;
  for (int layer = 0; by_layer && layer < c.dims.layers; ++layer) {
    // By its number, with zeros before it in some.
    std::optional<ConfigReader> own;
    for (const char* form : {"{}", "{:02}", "{:03}"})
      if (!own) own = by_layer->object(fmt::format(fmt::runtime(form), layer));
    LayerWidths before = wide;
    if (own) read(*own, "num_key_value_heads", "head_dim", c.dims.d_head);
    if (own)
      for (const ConfigKey& key : own->keys())
        if (!key.used)
          throw own->error(key.key, "head_dim and num_key_value_heads alone",
                           "another number that a layer has of its own");
    const bool differs = own && (wide.d_head != c.dims.d_head || wide.kv_heads != c.dims.kv_heads);
    if (!full(layer) && differs)
      throw by_layer->error(std::to_string(layer), "the widths of all layers with a window", "others");
    if (full(layer) && !own) wide = {c.dims.kv_heads, c.dims.d_head, c.dims.d_mlp};
    if (full(layer) && !first && !(wide == before))
      throw by_layer->error(std::to_string(layer), "the widths of all layers without a window", "others");
    if (!full(layer)) wide = before;
    first = first && !full(layer);
  }
  for (int layer = 0; layer < c.dims.layers; ++layer)
    c.dims.widths.push_back(full(layer) ? wide : LayerWidths{c.dims.kv_heads, c.dims.d_head, c.dims.d_mlp});
}

/// The last so many layers read keys and values of the last one of their kind before them.
void gemma4_lent_keys(ConfigMap& keys, ModelConfig& c) {
  int shared = 0;
  for (int layer = 0; !keys.reading() && layer < c.dims.layers; ++layer) shared += !c.own_keys(layer);
  keys.integer("num_kv_shared_layers", shared, 0, config_limits::layers, 0);
  if (!keys.reading() || shared == 0) return;
  if (shared >= c.dims.layers)
    throw keys.json().error("num_kv_shared_layers", fmt::format("less than the {} layers", c.dims.layers),
                            std::to_string(shared));
  const int own = c.dims.layers - shared;
  for (int layer = 0; layer < c.dims.layers; ++layer) {
    int from = layer;
    if (layer >= own) {
      from = own - 1;
      while (from >= 0 && (c.window(from) > 0) != (c.window(layer) > 0)) --from;
    }
    if (from < 0)
      throw keys.json().error("num_kv_shared_layers", "a layer of each kind before those that read its keys",
                              fmt::format("none for layer {}", layer));
    c.kv_layers.push_back(from);
  }
}

void gemma4_keys(ConfigMap& keys, ModelConfig& c, bool unified) {
  gemma_stream(keys, c);
  c.norm_gain_plus_one = false;
  c.norm_place = NormPlace::both;
  c.qk_norm = QkNorm::per_head;
  c.value_norm = true;
  c.dims.stream_scales = true;
  c.score_scale = 1;
  keys.gated_mlp("hidden_activation", c, "gelu_pytorch_tanh");
  keys.biases(c, "attention_bias");
  keys.cap("final_logit_softcapping", c.logit_cap, 0);
  keys.windows_every(c, unified ? 1024 : 512, 6);
  if (keys.reading()) {
    const ConfigReader& json = keys.json();
    if (c.windows.empty()) c.windows.assign(static_cast<std::size_t>(c.dims.layers), 0);
    c.windows.back() = 0;  // as its makers have it, whatever the list says
    if (const std::string whom = json.text("use_bidirectional_attention", "vision"); whom != "vision")
      throw json.error("use_bidirectional_attention", "\"vision\" or null", "\"" + whom + "\"",
                       "only decoders are read, which see no later token");
  }
  bool shared_values = std::ranges::count(c.values_are_keys, true) > 0;
  keys.flag("attention_k_eq_v", shared_values, false);
  gemma4_widths(keys, c, shared_values);
  gemma4_lent_keys(keys, c);
  if (keys.reading() && shared_values)
    for (int layer = 0; layer < c.dims.layers; ++layer)
      c.values_are_keys.push_back(c.window(layer) == 0 && c.own_keys(layer));
  bool twice = false;
  for (int layer = 0; !keys.reading() && layer < c.dims.layers; ++layer)
    twice = twice || (!c.own_keys(layer) && c.dims.widths_of(layer).d_mlp == 2 * c.dims.d_mlp);
  keys.flag("use_double_wide_mlp", twice, false);
  for (int layer = 0; keys.reading() && twice && layer < c.dims.layers; ++layer)
    if (!c.own_keys(layer)) nth(c.dims.widths, layer).d_mlp *= 2;
  if (keys.reading() && !keys.json().has("rope_parameters")) {
    c.position = PositionKind::rotary;
    c.rotary.base = 1e6;
    const int last = c.dims.widths.back().d_head;
    c.rotary.pairs = last / 4 / 2;
    for (int layer = 0; layer < c.dims.layers; ++layer)
      c.layer_rotary.push_back(c.window(layer) > 0 ? RotaryConfig{.base = 1e4} : c.rotary);
  } else {
    if (keys.reading())
      for (const char* kind : {"full_attention", "sliding_attention"})
        if (const auto own = keys.json().object("rope_parameters")->object(kind);
            own && own->text("rope_type", "default") == "default" && own->number("partial_rotary_factor", 0, 1, 1) != 1)
          throw own->error("partial_rotary_factor", "1, or rope_type \"proportional\"", "a part of each head",
                           "the library does not follow it");
    keys.rotary_by_window(c, 1e6, 1e4, "rope_local_base_freq");
  }
  keys.ends(c, true);
}
}  // namespace

void gemma4_unified_text_keys(ConfigMap& keys, ModelConfig& c) {
  gemma4_keys(keys, c, true);
}

void gemma4_text_keys(ConfigMap& keys, ModelConfig& c) {
  gemma4_keys(keys, c, false);
  keys.integer("hidden_size_per_layer_input", c.dims.d_layer, 0, config_limits::d_model, 256);
  keys.integer("vocab_size_per_layer_input", c.layer_vocab, 1, config_limits::vocab, 262144);
  if (keys.reading() && c.dims.d_layer > 0 && c.layer_vocab < c.dims.vocab)
    throw keys.json().error("vocab_size_per_layer_input", fmt::format("a row for each of {} tokens", c.dims.vocab),
                            std::to_string(c.layer_vocab));
  bool sparse = c.experts.count > 0;
  keys.flag("enable_moe_block", sparse, false);
  if (!sparse) {
    if (keys.reading())
      for (const char* key : {"num_experts", "top_k_experts", "moe_intermediate_size"}) (void)keys.json().has(key);
    return;
  }
  expert_keys(
      keys, c,
      {.count = "num_experts", .count_too = "", .per_token = "top_k_experts", .width = "moe_intermediate_size"});
  c.experts.renormalized = c.experts.beside = c.experts.weigh_output = true;
}

WeightNames gemma4_names(const ModelConfig& c) {
  WeightNames names = gemma2_names(c);
  names.layer_embedding = "embed_tokens_per_layer";
  names.layer_projection = "per_layer_model_projection";
  names.layer_norm = "per_layer_projection_norm";
  names.input_gate = "per_layer_input_gate";
  names.input_out = "per_layer_projection";
  names.input_norm = "post_per_layer_input_norm";
  names.stream_scale = "layer_scalar";
  names.experts.router = "router.proj";
  names.experts.router_gain = "router.scale";
  names.experts.output_weight = "router.per_expert_scale";
  names.experts.gate_up_of_all = "experts.gate_up_proj";
  names.experts.down_of_all = "experts.down_proj";
  names.experts.rows = true;
  names.experts.in_norm = "pre_feedforward_layernorm_2.weight";
  names.experts.out_norm = "post_feedforward_layernorm_2.weight";
  names.experts.dense_norm = "post_feedforward_layernorm_1.weight";
  return names;
}

Family gemma4_text_family();  // declared with all others in family.cpp
Family gemma4_text_family() {
  return usual_family("gemma4_text", "Gemma4ForCausalLM",
                      to_say("as gemma3_text: values normalised too, wide heads where there is no window, late layers "
                             "with keys of earlier ones"),
                      &gemma4_text_keys, &gemma4_names);
}

}  // namespace headscope
