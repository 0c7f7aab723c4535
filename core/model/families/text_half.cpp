#include "core/model/families/text_half.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace headscope {

namespace {
constexpr std::string_view embedding = "model.embed_tokens.weight", blocks = "model.layers.";

/// The tensors of the text under the names that they have where there is nothing else, all others as they are called.
class TextSource final : public WeightSource {
 public:
  TextSource(const WeightSource& whole, const TextHalf& half) : whole_(whole), more_(half.more_tokens) {
    if (half.left_out.empty()) return;
    std::map<int, bool> read;  // by number in the file
    for (const std::string& name : whole.names())
      if (const std::string alone = plain(name); const auto number = block_of(alone)) {
        bool& each = read.try_emplace(*number, true).first->second;
        each = each && alone.find(half.left_out) == std::string::npos;
      }
    for (const auto& [number, each] : read)
      if (each) blocks_.push_back(number);
  }
  std::string where() const override { return whole_.where(); }
  std::vector<std::string> names() const override {
    std::vector<std::string> out = whole_.names();
    for (std::string& name : out) {
      std::string alone = plain(name);
      const auto number = blocks_.empty() ? std::nullopt : block_of(alone);
      const auto at = number ? std::ranges::lower_bound(blocks_, *number) : blocks_.end();
      if (!number)
        name = std::move(alone);
      else if (at != blocks_.end() && *at == *number)
        name = with_block(alone, static_cast<int>(at - blocks_.begin()));
      else if (name.starts_with(blocks))
        name = "of pictures: " + name;
    }
    return out;
  }
  bool contains(const std::string& name) const override { return whole_.contains(in_file(name)); }
  Tensor take(const std::string& name, const Shape& shape) const override {
    const std::string stored = in_file(name);
    // In files where it is no matrix of a module by itself, those rows stand apart.
    if (more_ == 0 || name != embedding || !stored.ends_with(".weight")) return whole_.take(stored, shape);
    return whole_.take(stored, {shape[0] + more_, shape[1]}).slice(0, 0, shape[0]);
  }
  std::string dtype(const std::string& name) const override { return whole_.dtype(in_file(name)); }

 private:
  /// What stands in files before the names of the text, and what of it stays.
  static constexpr std::pair<std::string_view, std::string_view> halves[] = {
      {"model.language_model.model.", "model."},
      {"model.language_model.lm_head.", "lm_head."},
      {"model.language_model.", "model."},
      {"language_model.model.", "model."},
      {"language_model.lm_head.", "lm_head."},
      {"model.text_model.", "model."},
      {"text_model.model.", "model."},
      {"text_model.lm_head.", "lm_head."},
      {"thinker.model.language_model.", "model."},
      {"thinker.model.", "model."},
      {"thinker.lm_head.", "lm_head."},
      {"model.transformer.wte.embedding", embedding},  // of Molmo
      {"model.transformer.blocks.", blocks},
      {"model.transformer.ln_f.", "model.norm."}};

  static std::string plain(const std::string& name) {
    for (const auto& [in_file, alone] : halves)
      if (name.starts_with(in_file)) return std::string(alone) + name.substr(in_file.size());
    return name;
  }
  static std::optional<int> block_of(const std::string& name) {
    if (!name.starts_with(blocks)) return {};
    int number = 0;
    const char* const first = name.data() + blocks.size();
    const auto [end, error] = std::from_chars(first, name.data() + name.size(), number);
    return error == std::errc() && *end == '.' ? std::optional(number) : std::nullopt;
  }
  static std::string with_block(const std::string& name, int number) {
    return std::string(blocks) + std::to_string(number) + name.substr(name.find('.', blocks.size()));
  }
  /// Asked of the file, not of its list: new weights have every name and no list.
  std::string in_file(std::string name) const {
    if (!blocks_.empty())
      if (const auto number = block_of(name)) {
        // More layers than the file has text: not one of these under a number of the file, which is another's.
        if (*number >= static_cast<int>(blocks_.size())) return "of no layer: " + name;
        name = with_block(name, blocks_[static_cast<std::size_t>(*number)]);
      }
    if (whole_.contains(name)) return name;
    for (const auto& [in_file, alone] : halves)
      if (name.starts_with(alone))
        if (std::string real = std::string(in_file) + name.substr(alone.size()); whole_.contains(real)) return real;
    return name;
  }

  const WeightSource& whole_;
  Index more_;
  std::vector<int> blocks_ = {};  ///< with TextHalf::left_out: the numbers in the file of those that are read
};

/// What the library has where text_config leaves it out.
std::map<std::string, double> usual_numbers(const std::string& type) {
  struct Extents {
    const char* type;
    int vocab, width, mlp, layers, heads, kv_heads, d_head, context;  // 0: as many as heads, or the width ÷ heads
  };
  constexpr Extents known[] = {{"llama", 32000, 4096, 11008, 32, 32, 0, 0, 2048},
                               {"mistral", 32000, 4096, 14336, 32, 32, 8, 0, 131072},
                               {"mistral4", 131072, 4096, 12288, 36, 32, 32, 0, 1048576},
                               {"gemma", 256000, 3072, 24576, 28, 16, 16, 256, 8192},
                               {"gemma2", 256000, 2304, 9216, 26, 8, 4, 256, 8192},
                               {"cohere2", 256000, 8192, 22528, 40, 64, 0, 0, 8192},
                               {"qwen2", 151936, 4096, 22016, 32, 32, 32, 0, 32768},
                               {"qwen3", 151936, 4096, 22016, 32, 32, 32, 128, 32768},
                               {"qwen3_5_text", 248320, 4096, 12288, 32, 16, 4, 256, 32768},
                               {"granite", 32000, 4096, 11008, 32, 32, 0, 0, 2048},
                               {"lfm2", 65536, 2560, 12288, 32, 32, 8, 0, 128000},
                               {"lfm2_moe", 65536, 2048, 7168, 32, 32, 8, 0, 128000},
                               {"deepseek_v3", 129280, 7168, 18432, 61, 128, 128, 0, 4096},
                               {"persimmon", 262144, 4096, 16384, 36, 64, 0, 0, 16384},
                               {"exaone4", 102400, 4096, 16384, 32, 32, 32, 0, 2048},
                               {"hyperclovax", 32000, 4096, 11008, 32, 32, 0, 0, 2048}};
  const auto* const found = std::ranges::find(known, type, &Extents::type);
  std::map<std::string, double> numbers;
  if (found == std::end(known)) return numbers;
  for (const auto& [key, number] : {std::pair("vocab_size", found->vocab),
                                    {"hidden_size", found->width},
                                    {"intermediate_size", found->mlp},
                                    {"num_hidden_layers", found->layers},
                                    {"num_attention_heads", found->heads},
                                    {"num_key_value_heads", found->kv_heads},
                                    {"head_dim", found->d_head},
                                    {"max_position_embeddings", found->context}})
    if (number > 0) numbers[key] = number;
  return numbers;
}

ModelConfig text_config(const ConfigReader& root, const TextHalf& half) {
  const auto inner = half.around.empty() ? std::nullopt : root.object(half.around);
  if (!half.around.empty() && !inner) throw root.error(half.around, "what surrounds text_config", "none");
  const ConfigReader& json = inner ? *inner : root;
  const auto nested = json.object("text_config");
  if (!nested && !half.flat) throw json.error("text_config", "the configuration of the half that reads text", "none");
  std::string type = half.types.front();
  if (nested) type = nested->text("model_type", type);
  if (std::ranges::find(half.types, type) == half.types.end())
    throw nested->error("model_type", fmt::format("one of {}", fmt::join(half.types, ", ")), type,
                        "the half that reads text is of another family");
  if (!half.as.empty()) type = half.as;
  ConfigReader text = (nested ? *nested : json).with_defaults(half.usual);
  if (!half.map) text = text.with_defaults(usual_numbers(type));
  if (!half.of_pictures.empty()) text = text.without(half.of_pictures);
  ModelConfig config;
  if (half.map) {
    ConfigMap keys(text);
    half.map(keys, config);
  } else {
    config = family(type, "text_config").read_config(text);
    config.text_family = type;
  }
  refuse_unread(text);
  if (half.ties)
    config.tied_embeddings = json.flag("tie_word_embeddings", *half.ties);
  else if (!text.has("tie_word_embeddings") || !config.tied_embeddings)  // either place may say it; older files within
    config.tied_embeddings = json.flag("tie_word_embeddings", config.tied_embeddings || half.tied);
  if (!config.bos) config.bos = json.token("bos_token_id", config.dims.vocab);
  if (!config.eos) config.eos = json.token("eos_token_id", config.dims.vocab);
  return config;
}
}  // namespace

Family text_half_family(TextHalf half) {
  Family made;
  made.model_type = half.model_type;
  made.summary = half.summary;
  made.read_config = [half](const ConfigReader& json) { return text_config(json, half); };
  made.read_weights = [half](const WeightSource& source, const ModelConfig& config) {
    const TextSource text(source, half);
    if (!half.map) return family(config.text_family, source.where()).read_weights(text, config);
    const bool older = half.older_names && text.contains(half.older) && !text.contains(half.newer);
    return read_usual_weights(text, config, (older ? half.older_names : half.names)(config));
  };
  made.write_config = [half](const ModelConfig& config) {
    ConfigWriter json, text;
    if (half.map) {
      ModelConfig copy = config;
      text.put("model_type", half.types.front());
      ConfigMap keys(text);
      half.map(keys, copy);
    } else {
      text = ConfigWriter::parse(family(config.text_family, config.name).write_config(config));
      if (!half.as.empty()) text.put("model_type", half.types.front());
    }
    ConfigWriter inner;
    ConfigWriter& at = half.around.empty() ? json : inner;
    json.put("architectures", std::vector<std::string>{half.architecture});
    json.put("model_type", half.model_type);
    at.put("tie_word_embeddings", config.tied_embeddings);
    at.put("text_config", text);
    if (!half.around.empty()) json.put(half.around, inner);
    return json.text();
  };
  return made;
}

}  // namespace headscope
