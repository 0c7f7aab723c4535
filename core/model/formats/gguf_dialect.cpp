#include "core/model/formats/gguf_dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"

namespace headscope {

namespace {

using nlohmann::json;

/// "#" is the layer. A name stands for its weight and its bias.
struct TensorRule {
  std::string_view gguf, family;
  Turn turn = Turn::none;
  /// The key with the number of heads, of rotary_pairs.
  std::string_view heads = "";
};
struct KeyRule {
  std::string_view gguf, config;  ///< "block_count", without the architecture in front
};
struct Architecture {
  std::string_view name, model_type;
  std::span<const KeyRule> keys;
  std::span<const TensorRule> tensors;
  /// Truth values of config.json that say whether a tensor is there.
  std::span<const KeyRule> flags = {};
};

constexpr KeyRule llama_keys[] = {
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
};
constexpr TensorRule llama_tensors[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.#.attn_norm", "model.layers.#.input_layernorm"},
    {"blk.#.attn_q", "model.layers.#.self_attn.q_proj", Turn::rotary_pairs, "attention.head_count"},
    {"blk.#.attn_k", "model.layers.#.self_attn.k_proj", Turn::rotary_pairs, "attention.head_count_kv"},
    {"blk.#.attn_v", "model.layers.#.self_attn.v_proj"},
    {"blk.#.attn_output", "model.layers.#.self_attn.o_proj"},
    {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"},
    {"blk.#.ffn_gate", "model.layers.#.mlp.gate_proj"},
    {"blk.#.ffn_up", "model.layers.#.mlp.up_proj"},
    {"blk.#.ffn_down", "model.layers.#.mlp.down_proj"},
};

constexpr KeyRule llama_flags[] = {{"blk.0.attn_q.bias", "attention_bias"}, {"blk.0.ffn_up.bias", "mlp_bias"}};

// As Llama, but that their rows lie as the family's do.
constexpr TensorRule qwen_tensors[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.#.attn_norm", "model.layers.#.input_layernorm"},
    {"blk.#.attn_q", "model.layers.#.self_attn.q_proj"},
    {"blk.#.attn_k", "model.layers.#.self_attn.k_proj"},
    {"blk.#.attn_v", "model.layers.#.self_attn.v_proj"},
    {"blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm"},
    {"blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm"},
    {"blk.#.attn_output", "model.layers.#.self_attn.o_proj"},
    {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"},
    {"blk.#.ffn_gate", "model.layers.#.mlp.gate_proj"},
    {"blk.#.ffn_up", "model.layers.#.mlp.up_proj"},
    {"blk.#.ffn_down", "model.layers.#.mlp.down_proj"},
};
constexpr KeyRule qwen3_flags[] = {{"blk.0.attn_q.bias", "attention_bias"}};

constexpr KeyRule gpt2_keys[] = {
    {"block_count", "n_layer"},         {"context_length", "n_positions"},
    {"embedding_length", "n_embd"},     {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
};
constexpr TensorRule gpt2_tensors[] = {
    {"token_embd", "transformer.wte"},
    {"position_embd", "transformer.wpe"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
    {"blk.#.attn_norm", "transformer.h.#.ln_1"},
    {"blk.#.attn_qkv", "transformer.h.#.attn.c_attn", Turn::transposed},
    {"blk.#.attn_output", "transformer.h.#.attn.c_proj", Turn::transposed},
    {"blk.#.ffn_norm", "transformer.h.#.ln_2"},
    {"blk.#.ffn_up", "transformer.h.#.mlp.c_fc", Turn::transposed},
    {"blk.#.ffn_down", "transformer.h.#.mlp.c_proj", Turn::transposed},
};

constexpr Architecture architectures[] = {
    {"llama", "llama", llama_keys, llama_tensors, llama_flags},
    {"qwen2", "qwen2", llama_keys, qwen_tensors},
    {"qwen3", "qwen3", llama_keys, qwen_tensors, qwen3_flags},
    {"gpt2", "gpt2", gpt2_keys, gpt2_tensors},
};

/// Keys of an architecture that say nothing about the numbers, or what is told and checked elsewhere.
constexpr std::string_view harmless_keys[] = {
    "vocab_size",
    "tensor_data_layout",
    "rope.scaling.finetuned",
};
/// The factors by which Llama 3.1 divides the rotary frequencies; no weight.
constexpr const char* rope_factors = "rope_freqs.weight";

const Architecture& architecture_of(const GgufFile& file) {
  const std::string where = file.path().string() + ": general.architecture";
  const std::string* const name = file.find<std::string>("general.architecture");
  std::string known;
  for (const Architecture& each : architectures) {
    if (name && *name == each.name) return each;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw Error(where, "one of " + known, name ? "\"" + excerpt(*name, 60) + "\"" : "none",
              "take the model's Hugging Face folder, if its family is known");
}

std::string key_of(const Architecture& architecture, std::string_view key) {
  return fmt::format("{}.{}", architecture.name, key);
}

/// A number, also of a list with one number for every layer, which must be the same: layers that differ in shape are no
/// decoder that is known here.
json number_of(const GgufFile& file, const std::string& key) {
  const std::string where = file.path().string() + ": " + key;
  return std::visit(
      [&]<class T>(const T& value) -> json {
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<double>>) {
          if (value.empty() || std::ranges::adjacent_find(value, std::ranges::not_equal_to()) != value.end())
            throw Error(where, "the same number for every layer", value.empty() ? "no number" : "different ones");
          return value.front();
        } else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) {
          return value;
        } else {
          throw Error(where, "a number", "another value");
        }
      },
      file.keys().at(key));
}

std::optional<std::int64_t> whole_of(const GgufFile& file, const std::string& key) {
  if (!file.keys().contains(key)) return std::nullopt;
  const json value = number_of(file, key);
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

void must_be(const GgufFile& file, const std::string& key, std::optional<std::int64_t> expected, const char* why) {
  const auto told = whole_of(file, key);
  if (told && expected && *told != *expected)
    throw Error(file.path().string() + ": " + key, fmt::format("{}, {}", *expected, why), fmt::format("{}", *told));
}

/// llama.cpp stores what Llama 3's rule of scaling gives, a factor for each frequency, and not its four numbers. Three
/// of them are the same in all published models; they are believed if they give these very factors.
json llama3_scaling(const GgufFile& file, double base) {
  const Tensor factors = file.tensor(rope_factors).packed();
  const std::string where = file.path().string() + ": tensor " + rope_factors;
  const auto count = static_cast<double>(factors.size());
  double largest = 1;
  for (const float factor : factors.values()) largest = std::max(largest, static_cast<double>(factor));
  constexpr int low = 1, high = 4, original = 8192;
  for (Index i = 0; i < factors.size(); ++i) {
    const double frequency = std::pow(base, -static_cast<double>(i) / count);
    const double turns = original * frequency / (2 * 3.14159265358979323846);  // over the original context
    const double smooth = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    const double expected = 1 / ((1 - smooth) / largest + smooth);
    if (!(std::abs(static_cast<double>(factors.at(i)) - expected) <= 1e-4 * expected))
      throw Error(where, fmt::format("{:.6g} at {}, as Llama 3's scaling by {} gives", expected, i, largest),
                  fmt::format("{:.6g}", factors.at(i)), "other ways of scaling are not read from GGUF");
  }
  return {{"rope_type", "llama3"},
          {"factor", largest},
          {"low_freq_factor", low},
          {"high_freq_factor", high},
          {"original_max_position_embeddings", original}};
}

/// rope.scaling.* as config.json's "rope_scaling".
void put_scaling(const GgufFile& file, const Architecture& architecture, json& config) {
  const auto at = [&](const char* key) { return key_of(architecture, key); };
  if (const std::string* const type = file.find<std::string>(at("rope.scaling.type")); type && *type != "none") {
    config["rope_scaling"] = {{"rope_type", *type}};
    if (file.keys().contains(at("rope.scaling.factor")))
      config["rope_scaling"]["factor"] = number_of(file, at("rope.scaling.factor"));
  } else if (file.contains(rope_factors)) {
    config["rope_scaling"] = llama3_scaling(file, config.value("rope_theta", 10000.0));
  }
}

/// The rule for a tensor's name, and its layer; none when there is none.
struct Place {
  const TensorRule* rule = nullptr;
  std::string layer, part;  ///< "3", ".weight"
};
Place place_of(const Architecture& architecture, const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || (name.substr(dot) != ".weight" && name.substr(dot) != ".bias")) return {};
  Place place{nullptr, "", name.substr(dot)};
  std::string stem = name.substr(0, dot);
  if (stem.starts_with("blk.")) {
    const std::size_t end = stem.find('.', 4);
    if (end == std::string::npos) return {};
    place.layer = stem.substr(4, end - 4);
    stem = "blk.#" + stem.substr(end);
  }
  for (const TensorRule& rule : architecture.tensors)
    if (rule.gguf == stem) place.rule = &rule;
  return place;
}

}  // namespace

ConfigReader gguf_config(const GgufFile& file) {
  const Architecture& architecture = architecture_of(file);
  const std::string prefix = key_of(architecture, "");
  json config = {{"model_type", architecture.model_type}};
  std::map<std::string, std::string> spelled;
  std::set<std::string> known;
  for (const KeyRule& rule : architecture.keys) {
    const std::string key = key_of(architecture, rule.gguf);
    spelled[std::string(rule.config)] = key;
    known.insert(key);
    if (file.keys().contains(key)) config[std::string(rule.config)] = number_of(file, key);
  }
  const std::optional<std::int64_t> heads = whole_of(file, prefix + "attention.head_count");
  std::optional<std::int64_t> d_head = whole_of(file, prefix + "attention.key_length");
  if (const auto width = whole_of(file, prefix + "embedding_length"); !d_head && width && heads && *heads > 0)
    d_head = *width / *heads;
  must_be(file, prefix + "attention.value_length", d_head, "as keys have");
  must_be(file, prefix + "rope.dimension_count", d_head, "the whole width of a head");
  if (!config.contains("num_key_value_heads"))
    must_be(file, prefix + "attention.head_count_kv", heads, "as many as there are heads");
  for (const char* key : {"attention.value_length", "rope.dimension_count", "attention.head_count_kv",
                          "rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length"})
    known.insert(prefix + key);
  for (const std::string_view key : harmless_keys) known.insert(prefix + std::string(key));
  for (const auto& [key, value] : file.keys()) {
    if (!key.starts_with(prefix) || known.contains(key)) continue;
    if (const std::int64_t* const number = std::get_if<std::int64_t>(&value); number && *number == 0) continue;
    throw Error(file.path().string() + ": " + excerpt(key, 80),
                "only keys of a " + std::string(architecture.name) + " that are understood", "this one",
                "leaving it out could compute something else than this model");
  }

  put_scaling(file, architecture, config);
  if (const auto embedding = file.tensors().find("token_embd.weight");
      embedding != file.tensors().end() && embedding->second.shape.size() == 2)
    config["vocab_size"] = embedding->second.shape[0];
  config["tie_word_embeddings"] = !file.contains("output.weight");
  for (const KeyRule& flag : architecture.flags)
    config[std::string(flag.config)] = file.contains(std::string(flag.gguf));
  for (const char* which : {"bos", "eos"})
    if (const auto id = whole_of(file, fmt::format("tokenizer.ggml.{}_token_id", which)))
      config[fmt::format("{}_token_id", which)] = *id;
  return ConfigReader::parse(config.dump(), file.path().string(), std::move(spelled));
}

std::unique_ptr<WeightSource> gguf_weights(const std::shared_ptr<const GgufFile>& file) {
  const Architecture& architecture = architecture_of(*file);
  std::map<std::string, RenamedWeights::Stored> by_name;
  std::string strangers;
  for (const auto& [name, entry] : file->tensors()) {
    if (name == rope_factors) continue;
    const Place place = place_of(architecture, name);
    if (!place.rule) {
      if (strangers.size() < 120) strangers += (strangers.empty() ? "" : ", ") + excerpt(name, 60);
      continue;
    }
    std::string known(place.rule->family);
    if (const std::size_t at = known.find('#'); at != std::string::npos) known.replace(at, 1, place.layer);
    RenamedWeights::Stored stored{name, place.rule->turn, 1};
    if (stored.turn == Turn::rotary_pairs) {
      auto heads = whole_of(*file, key_of(architecture, place.rule->heads));
      if (!heads) heads = whole_of(*file, key_of(architecture, "attention.head_count"));
      const std::int64_t rows = entry.shape.empty() ? 0 : entry.shape[0];
      if (!heads || *heads < 1 || *heads > rows || rows % (2 * *heads) != 0)
        throw Error(file->path().string() + ": tensor " + name, "rows in pairs for each head",
                    fmt::format("{} rows for {} heads", rows, heads.value_or(0)));
      stored.heads = static_cast<int>(*heads);
    }
    by_name.emplace(known + place.part, std::move(stored));
  }
  if (!strangers.empty())
    throw Error(file->path().string(), "only tensors that a " + std::string(architecture.name) + " has", strangers,
                "leaving tensors out would compute something else than this model");
  return std::make_unique<RenamedWeights>(file, std::move(by_name));
}

}  // namespace headscope
