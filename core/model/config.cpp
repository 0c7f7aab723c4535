#include "core/model/config.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>

#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/bare_infinity.h"
#include "core/io/strict_json.h"
#include "core/model/config_map.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/formats/few_bits.h"
#include "core/model/formats/model_files.h"
#include "core/model/picture_input.h"
#include "core/model/sound_input.h"

namespace headscope {

using Json = nlohmann::json;

struct ConfigReader::Data {
  Json json;
  std::string where;  ///< file, then the keys of enclosing objects
  std::shared_ptr<std::set<std::string>> asked = std::make_shared<std::set<std::string>>();  // of with_defaults(), too
  std::map<std::string, std::string> spelled = {};
  mutable std::map<std::string, std::vector<std::shared_ptr<const Data>>> opened = {};  ///< by object()
};

namespace {

constexpr std::size_t config_bytes_limit = std::size_t{16} << 20;

std::string show(const Json& value) {
  return json_excerpt(value);
}
std::string show(double value) {
  return Json(value).dump();
}

/// Infinity or a number; NaN for anything else.
double plain_number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const bool infinite = value.is_object() && value.size() == 1 && value.value("__float__", Json()) == "Infinity";
  return infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

ConfigReader ConfigReader::open(const std::filesystem::path& file) {
  return parse(read_file(file, config_bytes_limit), file.string());
}

ConfigReader ConfigReader::parse(const std::string& json, std::string where,
                                 std::map<std::string, std::string> spelled) {
  auto data = std::make_shared<Data>();
  data->json = parse_strict_json(strict_infinities(json), where);
  if (!data->json.is_object()) throw Error(std::move(where), "a JSON object", data->json.type_name());
  data->where = std::move(where);
  data->spelled = std::move(spelled);
  return ConfigReader(std::move(data));
}

Error ConfigReader::error(const std::string& key, const std::string& expected, const std::string& found,
                          const std::string& hint) const {
  const auto spelled = data_->spelled.find(key);
  return Error(data_->where + ": " + (spelled == data_->spelled.end() ? key : spelled->second), expected, found, hint);
}

bool ConfigReader::has(const std::string& key) const {
  data_->asked->insert(key);
  const auto found = data_->json.find(key);
  return found != data_->json.end() && !found->is_null();
}

bool ConfigReader::null(const std::string& key) const {
  data_->asked->insert(key);
  const auto found = data_->json.find(key);
  return found != data_->json.end() && found->is_null();
}

bool ConfigReader::is_object(const std::string& key) const {
  return has(key) && data_->json.at(key).is_object();
}

bool ConfigReader::is_list(const std::string& key) const {
  return has(key) && data_->json.at(key).is_array();
}
bool ConfigReader::is_text(const std::string& key) const {
  return has(key) && data_->json.at(key).is_string();
}

int ConfigReader::integer(const std::string& key, int low, int high) const {
  const std::string expected = "an integer in " + std::to_string(low) + "…" + std::to_string(high);
  if (!has(key)) throw error(key, expected, "nothing");
  const Json& value = data_->json.at(key);
  // Unsigned values above 2^63 are integers too, so compare before converting.
  const bool inside =
      value.is_number_unsigned()
          ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::max(high, 0)) &&
                static_cast<std::int64_t>(value.get<std::uint64_t>()) >= low
          : value.is_number_integer() && value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high;
  if (!inside) throw error(key, expected, show(value));
  return value.get<int>();
}

int ConfigReader::integer(const std::string& key, int low, int high, int fallback) const {
  return has(key) ? integer(key, low, high) : fallback;
}

double ConfigReader::number(const std::string& key, double low, double high) const {
  const std::string expected = "a number in " + show(low) + "…" + show(high);
  if (!has(key)) throw error(key, expected, "nothing");
  const Json& value = data_->json.at(key);
  if (!value.is_number()) throw error(key, expected, show(value));
  const double result = value.get<double>();
  if (!(result >= low && result <= high)) throw error(key, expected, show(value));
  return result;
}

double ConfigReader::number(const std::string& key, double low, double high, double fallback) const {
  return has(key) ? number(key, low, high) : fallback;
}

bool ConfigReader::flag(const std::string& key, bool fallback) const {
  if (!has(key)) return fallback;
  const Json& value = data_->json.at(key);
  if (!value.is_boolean()) throw error(key, "true or false", show(value));
  return value.get<bool>();
}

std::string ConfigReader::text(const std::string& key) const {
  if (!has(key)) throw error(key, "a string", "nothing");
  const Json& value = data_->json.at(key);
  if (!value.is_string()) throw error(key, "a string", show(value));
  return value.get<std::string>();
}

std::string ConfigReader::text(const std::string& key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

std::optional<std::vector<std::string>> ConfigReader::texts(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  const Json& list = data_->json.at(key);
  std::vector<std::string> out;
  const bool fits = list.is_array() && std::ranges::all_of(list, [](const Json& each) { return each.is_string(); });
  if (!fits) throw error(key, "a list of strings", show(list));
  for (const Json& each : list) out.push_back(each.get<std::string>());
  return out;
}

std::optional<std::vector<int>> ConfigReader::integers(const std::string& key, int low, int high) const {
  if (!has(key)) return std::nullopt;
  const Json& list = data_->json.at(key);
  const std::string expected = "a list of integers in " + std::to_string(low) + "…" + std::to_string(high);
  if (!list.is_array()) throw error(key, expected, show(list));
  std::vector<int> out;
  for (const Json& each : list) {
    const bool fits =
        each.is_number_integer() && (!each.is_number_unsigned() || each.get<std::uint64_t>() <= INT32_MAX);
    if (!fits || each.get<std::int64_t>() < low || each.get<std::int64_t>() > high)
      throw error(key, expected, show(list));
    out.push_back(each.get<int>());
  }
  return out;
}

std::optional<std::pair<int, int>> ConfigReader::one_or_two(const std::string& key, int low, int high) const {
  if (!has(key)) return std::nullopt;
  if (!data_->json.at(key).is_array()) {
    const int both = integer(key, low, high);
    return std::pair(both, both);
  }
  const std::vector<int> list = *integers(key, low, high);
  if (list.size() != 2) throw error(key, "one whole number or two", show(data_->json.at(key)));
  return std::pair(list[0], list[1]);
}

std::vector<double> ConfigReader::numbers(const std::string& key, double low, double high) const {
  const std::string expected = std::isfinite(high) ? "a list of numbers in " + show(low) + "…" + show(high)
                                                   : "a list of numbers of at least " + show(low);
  if (!has(key)) throw error(key, expected, "nothing");
  const Json& list = data_->json.at(key);
  if (!list.is_array()) throw error(key, expected, show(list));
  std::vector<double> out;
  for (const Json& each : list)
    if (const double value = out.emplace_back(plain_number(each)); !(value >= low && value <= high))
      throw error(key, expected, show(list));
  return out;
}

std::optional<std::vector<std::string>> ConfigReader::repeated_texts(const std::string& key, int most) const {
  if (!has(key)) return std::nullopt;
  const Json& list = data_->json.at(key);
  const auto fail = [&] { return error(key, "a list of [[names …], how often]", show(list)); };
  if (!list.is_array()) throw fail();
  std::vector<std::string> out;
  for (const Json& each : list) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_array() || !each[1].is_number_unsigned()) throw fail();
    for (std::uint64_t i = 0; i < each[1].get<std::uint64_t>(); ++i)
      for (const Json& name : each[0]) {
        if (!name.is_string() || static_cast<int>(out.size()) >= most) throw fail();
        out.push_back(name.get<std::string>());
      }
  }
  return out;
}

bool ConfigReader::unread(const std::string& key, const std::string& neutral) const {
  const auto found = data_->json.find(key);
  if (found == data_->json.end() || data_->asked->contains(key)) return false;
  return !found->is_null() && *found != Json(false) && (neutral.empty() || *found != Json::parse(neutral));
}

std::optional<ConfigReader> ConfigReader::object(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  const Json& value = data_->json.at(key);
  if (!value.is_object()) throw error(key, "an object or null", show(value));
  auto data = std::make_shared<Data>();
  data->json = value;
  data->where = data_->where + ": " + key;
  data_->opened[key].push_back(data);
  return ConfigReader(std::move(data));
}

ConfigReader ConfigReader::with_defaults(const std::map<std::string, double>& numbers) const {
  auto data = std::make_shared<Data>(*data_);
  for (const auto& [key, number] : numbers)
    if (!has(key)) {
      if (const auto whole = static_cast<std::int64_t>(number); static_cast<double>(whole) == number)
        data->json[key] = whole;
      else
        data->json[key] = number;
    }
  return ConfigReader(std::move(data));
}

ConfigReader ConfigReader::without(const std::string& key) const {
  (void)has(key);
  auto data = std::make_shared<Data>(*data_);
  data->json.erase(key);
  return ConfigReader(std::move(data));
}

std::vector<ConfigKey> ConfigReader::keys() const {
  std::vector<ConfigKey> out;
  for (const auto& [key, value] : data_->json.items()) {
    const auto spelled = data_->spelled.find(key);
    const std::string name = excerpt(spelled == data_->spelled.end() ? key : spelled->second, 80);
    const auto opened = data_->opened.find(key);
    if (opened == data_->opened.end()) {
      // As it is written, unlike in Errors, whose lines are short.
      const std::string shown = excerpt(value.dump(-1, ' ', false, Json::error_handler_t::replace));
      out.push_back({name, shown, data_->asked->contains(key)});
      continue;
    }
    std::vector<ConfigKey> inside;  // what any of its readers asked for
    for (const auto& data : opened->second) {
      const std::vector<ConfigKey> seen = ConfigReader(data).keys();
      if (inside.empty()) inside = seen;
      for (std::size_t i = 0; i < seen.size() && i < inside.size(); ++i) inside[i].used |= seen[i].used;
    }
    for (ConfigKey& each : inside) out.push_back({name + "." + each.key, std::move(each.value), each.used});
  }
  return out;
}

std::optional<std::int32_t> ConfigReader::token(const std::string& key, int vocab) const {
  if (!has(key)) return std::nullopt;
  const Json* value = &data_->json.at(key);
  if (value->is_array() && !value->empty()) value = &value->front();
  if (!value->is_number_integer()) throw error(key, "a token id, a list of token ids, or null", show(*value));
  if (value->is_number_unsigned() && value->get<std::uint64_t>() < static_cast<std::uint64_t>(vocab)) {
    return value->get<std::int32_t>();
  }
  return std::nullopt;
}

struct ConfigWriter::Data {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
};

ConfigWriter::ConfigWriter() : data_(std::make_unique<Data>()) {}
ConfigWriter::ConfigWriter(ConfigWriter&&) noexcept = default;
ConfigWriter& ConfigWriter::operator=(ConfigWriter&&) noexcept = default;
ConfigWriter::~ConfigWriter() = default;

void ConfigWriter::put(const std::string& key, int value) {
  data_->json[key] = value;
}
void ConfigWriter::put(const std::string& key, double value) {
  data_->json[key] = value;
}
void ConfigWriter::put(const std::string& key, bool value) {
  data_->json[key] = value;
}
void ConfigWriter::put(const std::string& key, const char* value) {
  data_->json[key] = value;
}
void ConfigWriter::put(const std::string& key, const std::vector<std::string>& value) {
  data_->json[key] = value;
}
void ConfigWriter::put(const std::string& key, std::optional<std::int32_t> value) {
  data_->json[key] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}
void ConfigWriter::put(const std::string& key, const std::vector<int>& value) {
  data_->json[key] = value;
}
void ConfigWriter::put(const std::string& key, const std::vector<double>& value) {
  data_->json[key] = value;
}
void ConfigWriter::put_repeated(const std::string& key, const std::vector<std::string>& value) {
  data_->json[key] = {{value, 1}};
}
void ConfigWriter::put(const std::string& key, const ConfigWriter& value) {
  data_->json[key] = value.data_->json;
}
ConfigWriter ConfigWriter::parse(const std::string& json) {
  ConfigWriter out;
  out.data_->json = nlohmann::ordered_json::parse(json);
  return out;
}
std::string ConfigWriter::text() const {
  return data_->json.dump(2) + "\n";
}

namespace {

/// Hugging Face's names; the first of an activation is the one that is written.
const std::vector<std::pair<const char*, Activation>>& activation_names() {
  static const std::vector<std::pair<const char*, Activation>> names = {{"gelu_new", Activation::gelu_tanh},
                                                                        {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                        {"gelu_fast", Activation::gelu_tanh},
                                                                        {"gelu", Activation::gelu},
                                                                        {"relu", Activation::relu},
                                                                        {"silu", Activation::silu},
                                                                        {"swish", Activation::silu},
                                                                        {"solu", Activation::solu},
                                                                        {"quick_gelu", Activation::quick_gelu},
                                                                        {"xielu", Activation::xielu},
                                                                        {"relu2", Activation::relu2},
                                                                        {"tanh", Activation::tanh}};
  return names;
}

}  // namespace

std::string activation_name(Activation activation) {
  return std::ranges::find(activation_names(), activation, [](const auto& known) { return known.second; })->first;
}

Activation read_activation(const ConfigReader& json, const std::string& key, const std::string& fallback) {
  // xIELU has weights: a family that has them reads it itself.
  std::vector<std::pair<const char*, Activation>> plain = activation_names();
  std::erase_if(plain, [](const auto& known) { return known.second == Activation::xielu; });
  return json.choice<Activation>(key, json.text(key, fallback), plain);
}

namespace {
/// Keys that change numbers in some family, and the value (besides null and false) that changes none.
struct Telling {
  const char *key, *neutral;
};
constexpr Telling telling[] = {{"alibi", ""},
                               {"apply_residual_connection_post_layernorm", ""},
                               {"attention_bias", ""},
                               {"attention_multiplier", ""},
                               {"attention_types", ""},
                               {"attn_config", ""},
                               {"attn_logit_softcapping", ""},
                               {"clip_qkv", ""},
                               {"embedding_multiplier", "1.0"},
                               {"final_logit_softcapping", ""},
                               {"kv_lora_rank", ""},
                               {"layer_types", ""},
                               {"logit_scale", "1.0"},
                               {"logits_scaling", "1.0"},
                               {"mlp_bias", ""},
                               {"n_routed_experts", ""},
                               {"new_decoder_architecture", ""},
                               {"no_rope_layers", ""},
                               {"num_experts", "1"},
                               {"num_local_experts", "1"},
                               {"parallel_attn", ""},
                               {"partial_rotary_factor", "1.0"},
                               {"qk_layernorm", ""},
                               {"query_pre_attn_scalar", ""},
                               {"residual_multiplier", "1.0"},
                               {"rope_parameters", ""},
                               {"rope_scaling", ""},
                               {"rotary_dim", ""},
                               {"rotary_pct", "1.0"},
                               {"sliding_window", ""},
                               {"use_bidirectional_attention", ""},
                               {"use_parallel_residual", ""},
                               {"use_qk_norm", ""},
                               {"use_sliding_window", ""},
                               {"use_task_id", ""},
                               {"word_embed_proj_dim", ""}};
}  // namespace

void refuse_unread(const ConfigReader& json) {
  for (const Telling& each : telling)
    if (json.unread(each.key, each.neutral))
      throw json.error(each.key, "a key that this family reads", "one that it does not, and that changes numbers",
                       "the model would compute something else than its makers meant");
}

namespace {
/// Files of sentence encoders call themselves …ForMaskedLM and have no matrix to logits. Where the weights cannot be
/// looked into config.json is right: whoever opens them says what is wrong.
bool has_head(const ModelLocation& place, const std::vector<std::string>& tensors) {
  try {
    const ModelFiles files = ModelFiles::open(place);
    return std::ranges::any_of(tensors, [&](const std::string& name) { return files.weights->contains(name); });
  } catch (const Error&) {
    return true;
  }
}
}  // namespace

namespace {
/// What a folder of BitNet's kind does to what its matrices read, of models whose pass has it.
void round_inputs(const ConfigReader& json, ModelConfig& c) {
  c.input_bits = bits_of_inputs(json);
  if (c.input_bits == 0) return;
  // Whose matrices of blocks are told from others by their names.
  const bool plain = (c.family == "bitnet" || c.family == "llama") && c.causal && c.stack == Stack::only && !c.vision &&
                     !c.sound && !c.latent() && !c.dims.any_state_space() && !c.experts.anywhere() &&
                     c.dims.d_layer == 0 && !c.head_layer && c.norms_before() && !c.norms_behind() &&
                     c.kv_layers.empty();
  if (!plain)
    throw json.error("quantization_config",
                     "bitnet of a BitNet or a Llama, whose blocks are attention and an MLP behind norms",
                     "a model of another make", "what matrices read is rounded there, too");
}
}  // namespace

ModelConfig load_config(const std::filesystem::path& path) {
  std::vector<ConfigKey> ignored;
  return load_config(path, ignored);
}

ModelConfig load_config(const std::filesystem::path& path, std::vector<ConfigKey>& keys) {
  const ModelLocation place = locate_model(path);
  const ConfigReader json = config_of(place);
  const Family& chosen =
      family(json.text("model_type"), (place.self_contained() ? place.weights : place.folder / "config.json").string());
  check_few_bits(json);
  ModelConfig config = chosen.read_config(json);
  refuse_unread(json);
  config.family = chosen.model_type;
  round_inputs(json, config);
  if (config.input_bits > 0 && !place.adapter.empty())
    throw Error(place.adapter.string(), "an adapter of a model whose matrices read rows as they are",
                fmt::format("one whose rows are rounded to {} bits", config.input_bits),
                "merged into the matrices it would read rounded rows, which it was not trained on");
  if (config.vision && !place.self_contained()) {
    read_preparation(place.folder, *config.vision);
    config.context = config.vision->tokens();
  }
  if (config.encoder && config.encoder->sound && !place.self_contained()) {
    ModelConfig encoder = *config.encoder;
    read_feature_extraction(place.folder, *encoder.sound);
    config.encoder = std::make_shared<const ModelConfig>(std::move(encoder));
  }
  if (config.predicts && config.head_layer && chosen.head_tensors && !has_head(place, chosen.head_tensors(config)))
    config.predicts = false;
  config.name = excerpt(place.name);  // shown everywhere, and written into JSON
  if (config.encoder) {
    ModelConfig encoder = *config.encoder;
    encoder.family = config.family, encoder.name = config.name;
    config.encoder = std::make_shared<const ModelConfig>(std::move(encoder));
  }
  keys = json.keys();
  return config;
}

}  // namespace headscope
