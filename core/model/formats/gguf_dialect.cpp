#include "core/model/formats/gguf_dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/model/formats/gguf_architectures.h"

namespace headscope {

namespace {

using nlohmann::json;
using Architecture = GgufArchitecture;
using KeyRule = GgufKeyRule;
using TensorRule = GgufTensorRule;

/// Keys of an architecture that say nothing about the numbers, or what is told and checked elsewhere.
constexpr std::string_view harmless_keys[] = {
    "vocab_size",
    "tensor_data_layout",
    "rope.scaling.finetuned",
    "rope.dimension_sections",  // of pictures: in a text all of them turn by the same position
    "n_deepstack_layers",       // likewise: what they add to layers
};
constexpr std::int64_t most_experts = 4096;
/// The factors by which Llama 3.1 divides the rotary frequencies; no weight.
constexpr const char* rope_factors = "rope_freqs.weight";
/// LongRoPE's divisors, likewise.
constexpr const char *short_factors = "rope_factors_short.weight", *long_factors = "rope_factors_long.weight";

const Architecture& architecture_of(const GgufFile& file) {
  const std::string where = file.path().string() + ": general.architecture";
  const std::string* const name = file.find<std::string>("general.architecture");
  std::string known;
  for (const Architecture& each : gguf_architectures()) {
    if (name && *name == each.name && (each.where.empty() || file.contains(std::string(each.where)))) return each;
    if (each.where.empty()) known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw Error(where, "one of " + known, name ? "\"" + excerpt(*name, 60) + "\"" : "none",
              "take the model's Hugging Face folder, if its family is known");
}

std::string key_of(const Architecture& architecture, std::string_view key) {
  return fmt::format("{}.{}", architecture.name, key);
}

/// A number or a truth value, also of a list with one number for every layer, which must be the same: layers that
/// differ in shape are no decoder that is known here.
json number_of(const GgufFile& file, const std::string& key) {
  const std::string where = file.path().string() + ": " + key;
  return std::visit(
      [&]<class T>(const T& value) -> json {
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<double>>) {
          if (value.empty() || std::ranges::adjacent_find(value, std::ranges::not_equal_to()) != value.end())
            throw Error(where, "the same number for every layer", value.empty() ? "no number" : "different ones");
          return value.front();
        } else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> || std::is_same_v<T, bool>) {
          return value;
        } else {
          throw Error(where, "a number or a truth value", "another value");
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

bool longrope(const GgufFile& file) {
  return file.contains(short_factors) && file.contains(long_factors);
}

/// rope.scaling.* as config.json's "rope_scaling".
void put_scaling(const GgufFile& file, const Architecture& architecture, json& config) {
  const auto at = [&](const char* key) { return key_of(architecture, key); };
  const auto trained = whole_of(file, at("rope.scaling.original_context_length"));
  json scaling;
  if (longrope(file)) {
    const auto list = [&](const char* name) {
      const Tensor factors = file.tensor(name).packed();
      return std::vector<double>(factors.values().begin(), factors.values().end());
    };
    scaling = {{"rope_type", "longrope"}, {"short_factor", list(short_factors)}, {"long_factor", list(long_factors)}};
    if (file.keys().contains(at("rope.scaling.attn_factor")))
      scaling["attention_factor"] = number_of(file, at("rope.scaling.attn_factor"));
    if (trained) scaling["original_max_position_embeddings"] = *trained;
  } else if (const auto* const type = file.find<std::string>(at("rope.scaling.type")); type && *type != "none") {
    scaling = {{"rope_type", *type}};
    if (file.keys().contains(at("rope.scaling.factor"))) scaling["factor"] = number_of(file, at("rope.scaling.factor"));
    if (trained && *type == "yarn") scaling["original_max_position_embeddings"] = *trained;
  } else if (file.contains(rope_factors)) {
    scaling = llama3_scaling(file, config.value("rope_theta", 10000.0));
  }
  if (!scaling.is_null()) config["rope_scaling"] = std::move(scaling);
}

/// NAME.scale, one number (or one for each expert) that multiplies NAME.weight, beside matrices of NVFP4, whose own
/// scales reach only so far; NAME.input_scale is that of activations, which are not rounded here.
constexpr std::string_view weight_end = ".weight", factor_end = ".scale", activation_end = ".input_scale";

/// The name with another end; empty where it has not the first.
std::string with_end(const std::string& name, std::string_view end, std::string_view other) {
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) + std::string(other) : "";
}
bool nvfp4(const GgufFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  return !name.empty() && found != file.tensors().end() && found->second.dtype == DType::nvfp4;
}
bool beside_nvfp4(const GgufFile& file, const std::string& name) {
  return nvfp4(file, with_end(name, factor_end, weight_end)) || nvfp4(file, with_end(name, activation_end, weight_end));
}
/// What multiplies this tensor, or empty.
std::string factor_of(const GgufFile& file, const std::string& name) {
  const std::string factor = with_end(name, weight_end, factor_end);
  return !factor.empty() && nvfp4(file, name) && file.contains(factor) ? factor : "";
}

/// The rules for a tensor's name, and its layer; none where there are none.
struct Place {
  std::vector<const TensorRule*> rules;
  std::string layer, expert, part;  ///< "3", "7", ".weight"
};
Place place_of(const Architecture& architecture, const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || (name.substr(dot) != ".weight" && name.substr(dot) != ".bias")) return {};
  Place place{{}, "", "", name.substr(dot)};
  std::string stem = name.substr(0, dot);
  if (stem.starts_with("blk.")) {
    const std::size_t end = stem.find('.', 4);
    if (end == std::string::npos) return {};
    place.layer = stem.substr(4, end - 4);
    stem = "blk.#" + stem.substr(end);
    if (const std::size_t last = stem.rfind('.'); stem.find_first_not_of("0123456789", last + 1) == std::string::npos) {
      place.expert = stem.substr(last + 1);
      stem.replace(last + 1, std::string::npos, "*");
    }
  }
  for (const TensorRule& rule : architecture.tensors)
    if (rule.gguf == stem) place.rules.push_back(&rule);
  return place;
}

/// Throws Error when the rows of the tensor are not so many that they can be turned.
RenamedWeights::Stored stored_as(const GgufFile& file, const Architecture& architecture, const TensorEntry& entry,
                                 Turn turn) {
  RenamedWeights::Stored stored{entry.name, turn};
  stored.factor = factor_of(file, entry.name);
  const std::int64_t rows = entry.shape.empty() ? 0 : entry.shape[0];
  const auto fail = [&](const std::string& expected, const std::string& found) {
    return Error(file.path().string() + ": tensor " + excerpt(entry.name), expected, found);
  };
  const std::int64_t heads = whole_of(file, key_of(architecture, "attention.head_count")).value_or(0),
                     keys = whole_of(file, key_of(architecture, "attention.head_count_kv")).value_or(heads);
  if (turn == Turn::rotary_pairs || turn == Turn::rotary_pairs_of_keys) {
    const std::int64_t own = turn == Turn::rotary_pairs ? heads : keys;
    if (own < 1 || own > rows || rows % (2 * own) != 0)
      throw fail("rows in pairs for each head", fmt::format("{} rows for {} heads", rows, own));
    stored.heads = static_cast<int>(own);
  } else if (turn == Turn::by_group) {
    if (keys < 1 || heads < 1 || heads % keys != 0 || heads > rows || rows % (heads + 2 * keys) != 0)
      throw fail("rows for each head of queries, keys and values",
                 fmt::format("{} rows for {} heads on {} key heads", rows, heads, keys));
    stored.heads = static_cast<int>(heads);
    stored.kv_heads = static_cast<int>(keys);
  } else if (turn == Turn::keys_and_values) {
    stored.values = entry.name;
    const std::size_t which = stored.values.find("attn_k_b");
    stored.values.replace(which, 8, "attn_v_b");
    if (!file.contains(stored.values)) throw fail("the tensor " + excerpt(stored.values) + " beside it", "none");
    for (const std::string& factor : {stored.factor, factor_of(file, stored.values)})
      if (!factor.empty())
        throw fail("keys and values of a latent without a number that multiplies them", excerpt(factor));
  } else if (turn == Turn::first_third || turn == Turn::second_third || turn == Turn::last_third) {
    if (rows < 3 || rows % 3 != 0) throw fail("as many rows of queries as of keys and values", std::to_string(rows));
  }
  return stored;
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
  std::optional<std::int64_t> d_head =
      architecture.latent ? std::nullopt : whole_of(file, prefix + "attention.key_length");
  if (const auto width = whole_of(file, prefix + "embedding_length");
      !d_head && width && heads && *heads > 0 && !architecture.latent)
    d_head = *width / *heads;
  must_be(file, prefix + "attention.value_length", d_head, "as keys have");
  const std::string turning = prefix + "rope.dimension_count";
  const auto width = whole_of(file, turning);
  if (architecture.share.empty() || !width || !d_head || *width >= *d_head)
    must_be(file, turning, d_head, "the whole width of a head");
  if (!architecture.share.empty() && width &&
      d_head)  // a little more than the share, so that rounding takes no dimension away
    config[std::string(architecture.share)] =
        std::min(1.0, (static_cast<double>(*width) + 0.25) / static_cast<double>(std::max<std::int64_t>(*d_head, 1)));
  if (!known.contains(prefix + "attention.head_count_kv") && !architecture.latent)
    must_be(file, prefix + "attention.head_count_kv", heads, "as many as there are heads");
  for (const char* key : {"attention.value_length", "rope.dimension_count", "attention.head_count_kv",
                          "rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length"})
    known.insert(prefix + key);
  if (longrope(file)) known.insert(prefix + "rope.scaling.attn_factor");
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
  if (architecture.more) architecture.more(file, config);
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
    if (name == rope_factors || name == short_factors || name == long_factors || beside_nvfp4(*file, name)) continue;
    const Place place = place_of(architecture, name);
    if (place.rules.empty() && strangers.size() < 120) strangers += (strangers.empty() ? "" : ", ") + excerpt(name, 60);
    for (const TensorRule* const rule : place.rules) {
      std::string known(rule->family);
      if (known.empty()) continue;
      const std::string part = rule->whole ? "" : place.part;
      if (const std::size_t at = known.find('#'); at != std::string::npos) known.replace(at, 1, place.layer);
      const bool gain_only = rule->turn == Turn::plus_one && place.part == ".bias";
      RenamedWeights::Stored stored = stored_as(*file, architecture, entry, gain_only ? Turn::none : rule->turn);
      const std::size_t at = known.find('*');
      if (at != std::string::npos && !place.expert.empty()) known.replace(at, 1, place.expert);
      if (at == std::string::npos || !place.expert.empty()) {
        by_name.emplace(known + part, std::move(stored));
        continue;
      }
      const std::int64_t experts = entry.shape.empty() ? 0 : std::min<std::int64_t>(entry.shape[0], most_experts);
      for (stored.expert = 0; stored.expert < experts; ++stored.expert)
        by_name.emplace(known.substr(0, at) + std::to_string(stored.expert) + known.substr(at + 1) + part, stored);
    }
  }
  if (!strangers.empty())
    throw Error(file->path().string(), "only tensors that a " + std::string(architecture.name) + " has", strangers,
                "leaving tensors out would compute something else than this model");
  return std::make_unique<RenamedWeights>(file, std::move(by_name));
}

}  // namespace headscope
