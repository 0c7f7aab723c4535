#include "core/model/config_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"

namespace headscope {

namespace limit = config_limits;
using Scaling = RotaryConfig::Scaling;

void ConfigMap::integer(const std::string& key, int& value, int low, int high, std::optional<int> fallback) {
  if (out_) return out_->put(key, value);
  value = fallback ? in_->integer(key, low, high, *fallback) : in_->integer(key, low, high);
}

void ConfigMap::optional(const std::string& key, int value) {
  out_->put(key, value > 0 ? std::optional<std::int32_t>(value) : std::nullopt);
}

void ConfigMap::number(const std::string& key, double& value, double low, double high, std::optional<double> fallback) {
  if (out_) return out_->put(key, value);
  value = fallback ? in_->number(key, low, high, *fallback) : in_->number(key, low, high);
}

void ConfigMap::flag(const std::string& key, bool& value, bool fallback) {
  if (out_) return out_->put(key, value);
  value = in_->flag(key, fallback);
}

void ConfigMap::activation(const std::string& key, Activation& value, const std::string& fallback) {
  if (out_) return out_->put(key, activation_name(value));
  value = read_activation(*in_, key, fallback);
}

void ConfigMap::gated_mlp(const std::string& key, ModelConfig& c, const std::string& fallback) {
  activation(key, c.activation, fallback);
  c.gated_mlp = true;
}

void ConfigMap::biases(ModelConfig& c, const std::string& attention_key, const std::string& mlp_key) {
  bool attention = c.bias.q, mlp = !mlp_key.empty() && c.bias.up;
  flag(attention_key, attention, false);
  if (!mlp_key.empty()) flag(mlp_key, mlp, false);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = attention;
  c.bias.up = c.bias.down = mlp;
}

void ConfigMap::text(const std::string& key, std::string& value, const std::string& fallback) {
  if (out_) return out_->put(key, value);
  value = in_->text(key, fallback);
}

void ConfigMap::token(const std::string& key, std::optional<std::int32_t>& value, int vocab) {
  if (out_) return out_->put(key, value);
  value = in_->token(key, vocab);
}

void ConfigMap::only(const std::string& key, bool value, const char* otherwise) {
  if (out_) return out_->put(key, value);
  if (in_->flag(key, value) != value)
    throw in_->error(key, value ? "true" : "false", value ? "false" : "true", otherwise);
}

void ConfigMap::cap(const std::string& key, double& value, double fallback) {
  if (out_) return value > 0 ? out_->put(key, value) : out_->put(key, std::optional<std::int32_t>());
  value = in_->null(key) ? 0 : in_->number(key, 0, 1e6, fallback);
}

void ConfigMap::extents(ModelConfig& c, const Extents& names) {
  ModelDims& d = c.dims;
  integer(names.layers, d.layers, 1, limit::layers);
  integer(names.heads, d.heads, 1, limit::heads);
  integer(names.width, d.d_model, 1, limit::d_model);
  if (names.kv_heads.empty())
    d.kv_heads = reading() ? d.heads : d.kv_heads;
  else
    integer(names.kv_heads, d.kv_heads, 1, limit::heads, names.usual_kv_heads > 0 ? names.usual_kv_heads : d.heads);
  if (reading()) {
    if (d.heads % d.kv_heads != 0)
      throw in_->error(names.kv_heads, fmt::format("a divisor of {} = {}", names.heads, d.heads),
                       std::to_string(d.kv_heads));
    const bool own = !names.d_head.empty() && in_->has(names.d_head);
    if (!own && d.d_model % d.heads != 0)
      throw in_->error(names.heads, fmt::format("a divisor of {} = {}", names.width, d.d_model),
                       std::to_string(d.heads), names.d_head.empty() ? "" : "or a head_dim of its own");
    d.d_head = d.d_model / d.heads;
  }
  if (!names.d_head.empty()) integer(names.d_head, d.d_head, 1, limit::d_head, d.d_head);
  if (names.mlp.empty())
    d.d_mlp = reading() ? names.mlp_factor * d.d_model : d.d_mlp;
  else
    integer(names.mlp, d.d_mlp, 1, limit::d_mlp,
            names.mlp_factor > 0 ? std::optional(names.mlp_factor * d.d_model) : std::nullopt);
  if (!names.context.empty()) integer(names.context, c.context, 1, limit::context);
  if (!names.vocab.empty()) integer(names.vocab, d.vocab, 1, limit::vocab);
}

void ConfigMap::norm(ModelConfig& c, NormKind kind, const std::string& key, double fallback) {
  c.norm = kind;
  if (!key.empty())
    number(key, c.norm_epsilon, 0, 1, fallback);
  else if (reading())
    c.norm_epsilon = fallback;
}

namespace {
/// As transformers has it: a key at the top comes first.
int trained_context(const ConfigReader& at, const ConfigReader& root, std::optional<int> fallback) {
  const char* const key = "original_max_position_embeddings";
  const ConfigReader& where = root.has(key) ? root : at;
  return fallback ? where.integer(key, 1, limit::context, *fallback) : where.integer(key, 1, limit::context);
}

/// YaRN with what its authors' code reads: `mscale` and `mscale_all_dim` change what queries and keys are multiplied by
/// where `attention_factor` does not say it.
void read_yarn(const ConfigReader& at, const ConfigReader& root, const ModelConfig& c, RotaryConfig& rotary) {
  rotary.original_context = trained_context(at, root, c.context);
  rotary.factor = at.number("factor", 1, 1e6, std::max(1.0, static_cast<double>(c.context) / rotary.original_context));
  const auto beta = [&](const char* key, double fallback) {
    const double given = at.number(key, 0, 1e6, fallback);
    return given > 0 ? given : fallback;
  };
  rotary.high_frequency_factor = beta("beta_fast", 32);
  rotary.low_frequency_factor = beta("beta_slow", 1);
  if (rotary.high_frequency_factor <= rotary.low_frequency_factor)
    throw at.error("beta_fast", fmt::format("more than beta_slow = {}", rotary.low_frequency_factor),
                   fmt::format("{}", rotary.high_frequency_factor));
  rotary.ramp = at.flag("truncate", true) ? RotaryConfig::Ramp::whole_pairs : RotaryConfig::Ramp::pairs;
  const double own = at.number("mscale", 0, 100, 0), all = at.number("mscale_all_dim", 0, 100, 0);
  const auto size = [&](double m) { return rotary.factor > 1 ? 0.1 * m * std::log(rotary.factor) + 1 : 1; };
  rotary.magnitude = at.number("attention_factor", 1e-6, 1e6, own > 0 && all > 0 ? size(own) / size(all) : size(1));
}

/// LongRoPE: a divisor for every pair, of texts as long as those of training and of longer ones.
void read_longrope(const ConfigReader& at, const ConfigReader& root, const ModelConfig& c, int width,
                   RotaryConfig& rotary) {
  rotary.original_context = trained_context(at, root, {});
  rotary.factor =
      at.number("factor", 1e-6, 1e6, static_cast<double>(c.context) / static_cast<double>(rotary.original_context));
  rotary.divisors = at.numbers("short_factor", 1e-6, 1e9);
  rotary.long_divisors = at.numbers("long_factor", 1e-6, 1e9);
  for (const auto& [key, list] : {std::pair("short_factor", &rotary.divisors), {"long_factor", &rotary.long_divisors}})
    if (static_cast<int>(list->size()) != width / 2)
      throw at.error(key, fmt::format("a number for each of the {} pairs that turn", width / 2),
                     std::to_string(list->size()));
  const double usual =
      rotary.factor > 1 ? std::sqrt(1 + std::log(rotary.factor) / std::log(rotary.original_context)) : 1;
  rotary.magnitude = at.number("attention_factor", 1e-6, 1e6, at.number("short_mscale", 1e-6, 1e6, usual));
  if (at.has("long_mscale")) rotary.long_magnitude = at.number("long_mscale", 1e-6, 1e6);
}
}  // namespace

RotaryConfig ConfigMap::read_rotary(const ConfigReader& at, const ConfigReader& root, const ModelConfig& c, double base,
                                    double share, const std::string& share_key, const std::string& base_key,
                                    bool round_up) const {
  RotaryConfig rotary;
  rotary.layout = c.rotary.layout;
  const auto from = [&](const std::string& key) -> const ConfigReader& { return at.has(key) ? at : root; };
  const bool nested = &at != &root;
  rotary.base =
      nested && at.has("rope_theta") ? at.number("rope_theta", 1, 1e12) : root.number(base_key, 1, 1e12, base);
  if (nested && at.has("partial_rotary_factor"))
    share = at.number("partial_rotary_factor", 0, 1);
  else if (!share_key.empty())
    share = root.number(share_key, 0, 1, share);
  const std::string type = at.has("rope_type") ? "rope_type" : "type";
  if (nested && at.text(type, "default") == "proportional") {
    if (c.dims.d_head % 2 != 0)
      throw at.error(type, "heads of an even width, since rotary positions turn pairs", std::to_string(c.dims.d_head));
    rotary.pairs = static_cast<int>(share * c.dims.d_head) / 2;
    if (rotary.pairs == c.dims.d_head / 2) rotary.pairs = -1;
    rotary.factor = at.number("factor", 1, 1e6, 1);
    if (rotary.factor != 1) rotary.scaling = Scaling::linear;
    return rotary;
  }
  int width = static_cast<int>(c.dims.d_head * share);
  const bool plain = !nested || at.text(type, "default") == "default";
  rotary.odd = round_up && plain && width % 2 != 0 && width < c.dims.d_head;
  if (!rotary.odd && (width < 2 || width % 2 != 0))
    throw from(share_key).error(share == 1 ? "head_dim" : share_key,
                                "an even number of dimensions, since rotary positions turn pairs",
                                fmt::format("{} of {}", width, c.dims.d_head));
  if (rotary.odd) ++width;
  if (width != c.dims.d_head) rotary.width = width;
  if (!nested) return rotary;
  rotary.scaling = at.choice<Scaling>(type, at.text(type, "default"),
                                      {{"default", Scaling::none},
                                       {"linear", Scaling::linear},
                                       {"llama3", Scaling::llama3},
                                       {"yarn", Scaling::yarn},
                                       {"dynamic", Scaling::dynamic},
                                       {"longrope", Scaling::longrope},
                                       {"mrope", Scaling::none},      // of text alone all its positions are the same
                                       {"xdrope", Scaling::dynamic},  // likewise (HunYuan)
                                       {"su", Scaling::longrope},
                                       {"deepseek_yarn", Scaling::yarn}});  // as Sarvam's makers call it
  if (at.has("llama_4_scaling_beta")) {
    rotary.query_growth = at.number("llama_4_scaling_beta", 0, 1e3);
    rotary.original_context = trained_context(at, root, {});
  }
  if (rotary.scaling == Scaling::none) return rotary;
  if (rotary.scaling == Scaling::dynamic && at.has("alpha") && at.number("alpha", 0, 1e9) > 0) {
    rotary.scaling = Scaling::ntk;  // one base for texts of any length (HunYuan)
    rotary.factor = at.number("alpha", 1e-6, 1e9);
    return rotary;
  }
  // "su" and "yarn" are what early files of Phi 3 call it; transformers reads them so too.
  if (rotary.scaling == Scaling::yarn && at.has("short_factor")) rotary.scaling = Scaling::longrope;
  if (rotary.scaling == Scaling::longrope) {
    read_longrope(at, root, c, width, rotary);
    return rotary;
  }
  if (rotary.scaling == Scaling::yarn) {
    read_yarn(at, root, c, rotary);
    return rotary;
  }
  rotary.factor = at.number("factor", 1, 1e6);
  if (rotary.scaling == Scaling::dynamic) rotary.original_context = c.context;
  if (rotary.scaling == Scaling::llama3) {
    rotary.low_frequency_factor = at.number("low_freq_factor", 1e-3, 1e6);
    rotary.high_frequency_factor = at.number("high_freq_factor", 1e-3, 1e6);
    if (rotary.high_frequency_factor <= rotary.low_frequency_factor)
      throw at.error("high_freq_factor", fmt::format("more than low_freq_factor = {}", rotary.low_frequency_factor),
                     fmt::format("{}", rotary.high_frequency_factor));
    rotary.original_context = trained_context(at, root, c.context);
  }
  return rotary;
}

ConfigWriter ConfigMap::written(const RotaryConfig& r, int d_head) {
  ConfigWriter json;
  json.put("rope_theta", r.base);
  if (r.pairs >= 0) {
    json.put("rope_type", "proportional");
    json.put("partial_rotary_factor", 2.0 * r.pairs / d_head);
    json.put("factor", r.factor);
    return json;
  }
  json.put("rope_type", r.scaling == Scaling::none  ? "default"
                        : r.scaling == Scaling::ntk ? "dynamic"
                                                    : std::string(info(r.scaling).id));
  const int turning = (r.width > 0 ? r.width : d_head) - (r.odd ? 1 : 0);
  double share = static_cast<double>(turning) / d_head;
  if (static_cast<int>(share * d_head) < turning) share = std::nextafter(share, 1.0);  // what is read is cut off
  json.put("partial_rotary_factor", share);
  if (r.scaling != Scaling::none) json.put(r.scaling == Scaling::ntk ? "alpha" : "factor", r.factor);
  if (r.query_growth > 0) {
    json.put("llama_4_scaling_beta", r.query_growth);
    json.put("original_max_position_embeddings", r.original_context);
  }
  if (r.scaling == Scaling::llama3) {
    json.put("low_freq_factor", r.low_frequency_factor);
    json.put("high_freq_factor", r.high_frequency_factor);
    json.put("original_max_position_embeddings", r.original_context);
  }
  if (r.scaling == Scaling::longrope) {
    json.put("short_factor", r.divisors);
    json.put("long_factor", r.long_divisors);
    json.put("attention_factor", r.magnitude);
    if (r.long_magnitude > 0) json.put("long_mscale", r.long_magnitude);
    json.put("original_max_position_embeddings", r.original_context);
  }
  if (r.scaling == Scaling::yarn) {
    json.put("beta_slow", r.low_frequency_factor);
    json.put("beta_fast", r.high_frequency_factor);
    json.put("truncate", r.ramp == RotaryConfig::Ramp::whole_pairs);
    json.put("attention_factor", rotary_magnitude(r));
    json.put("original_max_position_embeddings", r.original_context);
  }
  return json;
}

namespace {
/// Keys about rotation at the top: read all the same, wherever the answer comes from.
const char* const rope_keys[] = {"rope_parameters", "rope_scaling"};
}  // namespace

void ConfigMap::rotary(ModelConfig& c, double base, double share, const std::string& share_key,
                       const std::string& base_key) {
  c.position = PositionKind::rotary;
  if (out_) return out_->put("rope_parameters", written(c.rotary, c.dims.d_head));
  for (const char* key : rope_keys)
    if (const auto nested = in_->object(key)) {
      c.rotary = read_rotary(*nested, *in_, c, base, share, share_key, base_key);
      return;
    }
  c.rotary = read_rotary(*in_, *in_, c, base, share, share_key, base_key);
}

void ConfigMap::rotary_by_window(ModelConfig& c, double base, double local_base, const std::string& local_key,
                                 const std::string& base_key, double share, const std::string& share_key,
                                 bool round_up) {
  c.position = PositionKind::rotary;
  const auto local_layer = [&] {
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (c.window(layer) > 0) return layer;
    return -1;
  };
  const auto full_layer = [&] {
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (c.window(layer) == 0) return layer;
    return -1;
  };
  const auto d_head = [&](int layer) { return layer < 0 ? c.dims.d_head : c.dims.widths_of(layer).d_head; };
  if (out_) {
    ConfigWriter both;
    both.put("full_attention", written(c.rotary, d_head(full_layer())));
    const int local = local_layer();
    both.put("sliding_attention", written(local < 0 ? c.rotary : c.rotary_of(local), d_head(local)));
    return out_->put("rope_parameters", both);
  }
  const auto parameters = in_->object("rope_parameters"), scaling = in_->object("rope_scaling");
  const auto full = parameters ? parameters->object("full_attention") : scaling;
  const auto sliding = parameters ? parameters->object("sliding_attention") : std::nullopt;
  ModelConfig wide = c, narrow = c;  // of heads as wide as theirs
  wide.dims.d_head = d_head(full_layer()), narrow.dims.d_head = d_head(local_layer());
  c.rotary = read_rotary(full ? *full : *in_, *in_, wide, base, share, share_key, base_key, round_up);
  // Without a key of its own the local base is the file's, where there is one, or the family's.
  const RotaryConfig local = read_rotary(sliding ? *sliding : *in_, *in_, narrow, local_base, share, share_key,
                                         sliding ? "" : local_key, round_up);
  if (local == c.rotary) return;
  for (int layer = 0; layer < c.dims.layers; ++layer) c.layer_rotary.push_back(c.window(layer) > 0 ? local : c.rotary);
}

void ConfigMap::layer_types(ModelConfig& c, int window, std::vector<bool> local) {
  if (out_) {
    std::vector<std::string> types;
    int widest = 0;
    for (int layer = 0; layer < c.dims.layers; ++layer) {
      types.emplace_back(c.window(layer) > 0 ? "sliding_attention" : "full_attention");
      widest = std::max(widest, c.window(layer));
    }
    out_->put("layer_types", types);
    if (widest > 0) out_->put("sliding_window", widest);
    return;
  }
  if (const auto types = in_->texts("layer_types")) {
    if (types->size() != local.size())
      throw in_->error("layer_types", fmt::format("a kind for each of {} layers", local.size()),
                       std::to_string(types->size()));
    for (std::size_t i = 0; i < local.size(); ++i)
      local[i] =
          in_->choice<bool>("layer_types", (*types)[i], {{"sliding_attention", true}, {"full_attention", false}});
  }
  if (std::ranges::find(local, true) == local.end()) return;
  if (window < 1) throw in_->error("sliding_window", "a number of tokens for the sliding layers", "none");
  for (const bool each : local) c.windows.push_back(each ? window : 0);
}

void ConfigMap::windows_every(ModelConfig& c, int window, int pattern) {
  if (reading()) {
    const bool listed = in_->has("layer_types");
    if (!listed) pattern = in_->integer("sliding_window_pattern", 1, limit::layers, pattern);
    window = in_->null("sliding_window") ? 0 : in_->integer("sliding_window", 0, limit::context, window);
  }
  layer_types(c, window, [&](int layer) { return (layer + 1) % pattern != 0; });
}

void ConfigMap::windows_from(const std::string& key, ModelConfig& c, int usual) {
  bool windowed = !reading() && !c.windows.empty();
  flag("use_sliding_window", windowed, false);
  if (!reading()) {
    if (windowed) layer_types(c, 0, [](int) { return false; });
    return;
  }
  const int from = in_->integer(key, 0, limit::layers, usual);
  const int window = in_->null("sliding_window") ? 0 : in_->integer("sliding_window", 0, limit::context, 4096);
  if (windowed)
    layer_types(c, window, [&](int layer) { return layer >= from; });
  else
    (void)in_->has("layer_types");  // of a model without windows: all alike
}

void ConfigMap::one_window(ModelConfig& c, std::optional<int> fallback) {
  int window = c.window(0);
  if (out_ && window == 0) return out_->put("sliding_window", std::optional<std::int32_t>());
  integer("sliding_window", window, 0, limit::context,
          reading() && in_->null("sliding_window") ? 0 : fallback.value_or(0));
  if (reading() && window > 0) c.windows.assign(static_cast<std::size_t>(c.dims.layers), window);
}

void ConfigMap::layers_repeated(const std::string& key, ModelConfig& c, int window) {
  if (out_) {
    std::vector<std::string> kinds;
    for (int layer = 0; layer < c.dims.layers; ++layer) kinds.emplace_back(c.window(layer) > 0 ? "local" : "global");
    return out_->put_repeated(key, kinds);
  }
  auto kinds = in_->repeated_texts(key, limit::layers);
  if (!kinds) {
    kinds.emplace();
    for (int layer = 0; layer < c.dims.layers; ++layer) kinds->emplace_back(layer % 2 == 0 ? "global" : "local");
  }
  if (static_cast<int>(kinds->size()) != c.dims.layers)
    throw in_->error(key, fmt::format("kinds for {} layers", c.dims.layers), std::to_string(kinds->size()));
  for (const std::string& kind : *kinds)
    c.windows.push_back(in_->choice<bool>(key, kind, {{"global", false}, {"local", true}}) ? window : 0);
}

void ConfigMap::layers_that_turn(const std::string& key, ModelConfig& c, int interval) {
  if (out_) {
    std::vector<int> turn;
    for (int layer = 0; layer < c.dims.layers; ++layer) turn.push_back(c.turns(layer));
    return out_->put(key, turn);
  }
  interval = in_->integer("no_rope_layer_interval", 1, limit::layers, interval);
  auto turn = in_->integers(key, 0, 1);
  if (turn && turn->empty()) turn.reset();  // as published Llama 4 has it
  if (turn && static_cast<int>(turn->size()) != c.dims.layers)
    throw in_->error(key, fmt::format("0 or 1 for each of {} layers", c.dims.layers), std::to_string(turn->size()));
  for (int layer = 0; layer < c.dims.layers; ++layer)
    c.layer_turns.push_back(turn ? nth(*turn, layer) == 1 : (layer + 1) % interval != 0);
}

void ConfigMap::predicts(ModelConfig& c) {
  if (out_) return;  // the architecture says it
  const auto classes = in_->texts("architectures");
  c.predicts = !classes || classes->empty() || std::ranges::any_of(*classes, [&](const std::string& name) {
    if (c.vision) return name.find("ForImageClassification") != std::string::npos;
    return name.ends_with("ForMaskedLM") || name.ends_with("ForPreTraining");
  });
}

void ConfigMap::picture(ModelConfig& c) {
  VisionConfig& v = *c.vision;
  integer("patch_size", v.patch, 1, 1024);
  integer("num_channels", v.channels, 3, 3, 3);
  if (out_) {
    out_->put("image_size", std::vector<int>{v.height, v.width});
  } else if (const auto both = in_->one_or_two("image_size", 1, 1 << 14)) {
    v.height = both->first, v.width = both->second;
  } else {
    throw in_->error("image_size", "pixels of a side, or [height, width]", "nothing");
  }
  if (reading() && (v.height < v.patch || v.width < v.patch))
    throw in_->error("image_size", fmt::format("patch_size = {} or more", v.patch),
                     fmt::format("{} × {}", v.height, v.width));
  if (reading()) c.context = v.tokens();
  classes(c);
}

void ConfigMap::classes(ModelConfig& c) {
  VisionConfig& v = *c.vision;
  if (out_) {
    ConfigWriter names;
    for (std::size_t i = 0; i < v.labels.size(); ++i) names.put(std::to_string(i), v.labels[i]);
    if (!v.labels.empty()) return out_->put("id2label", names);
    if (c.dims.vocab > 0) out_->put("num_labels", c.dims.vocab);
    return;
  }
  if (!c.predicts) return;
  if (const auto names = in_->object("id2label"))
    for (int i = 0; i < limit::vocab && names->has(std::to_string(i)); ++i)
      v.labels.push_back(names->text(std::to_string(i)));
  const int named = static_cast<int>(v.labels.size());
  c.dims.vocab = named > 0 ? named : in_->integer("num_labels", 1, limit::vocab, 2);
}

void ConfigMap::ends(ModelConfig& c, bool tied) {
  flag("tie_word_embeddings", c.tied_embeddings, tied);
  token("bos_token_id", c.bos, c.dims.vocab);
  token("eos_token_id", c.eos, c.dims.vocab);
}

}  // namespace headscope
