#include "core/model/families/text_half.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace headscope {

namespace {
/// The tensors of the text under the names that they have where there is nothing else, all others as they are called.
class TextSource final : public WeightSource {
 public:
  explicit TextSource(const WeightSource& whole) : whole_(whole) {}
  std::string where() const override { return whole_.where(); }
  std::vector<std::string> names() const override {
    std::vector<std::string> out = whole_.names();
    for (std::string& name : out)
      for (const auto& [in_file, plain] : halves)
        if (name.starts_with(in_file)) {
          name = std::string(plain) + name.substr(in_file.size());
          break;
        }
    return out;
  }
  bool contains(const std::string& name) const override { return whole_.contains(in_file(name)); }
  Tensor take(const std::string& name, const Shape& shape) const override { return whole_.take(in_file(name), shape); }
  std::string dtype(const std::string& name) const override { return whole_.dtype(in_file(name)); }

 private:
  /// What stands in files before the names of the text, and what of it stays.
  static constexpr std::pair<std::string_view, std::string_view> halves[] = {{"model.language_model.", "model."},
                                                                             {"language_model.model.", "model."},
                                                                             {"language_model.lm_head.", "lm_head."},
                                                                             {"model.text_model.", "model."}};
  /// Asked of the file, not of its list: new weights have every name and no list.
  std::string in_file(const std::string& name) const {
    if (whole_.contains(name)) return name;
    for (const auto& [in_file, plain] : halves)
      if (name.starts_with(plain))
        if (std::string real = std::string(in_file) + name.substr(plain.size()); whole_.contains(real)) return real;
    return name;
  }

  const WeightSource& whole_;
};

/// What the library has where text_config leaves it out.
std::map<std::string, int> usual_numbers(const std::string& type) {
  if (type == "llama")
    return {{"vocab_size", 32000},     {"hidden_size", 4096},       {"intermediate_size", 11008},
            {"num_hidden_layers", 32}, {"num_attention_heads", 32}, {"max_position_embeddings", 2048}};
  if (type == "mistral")
    return {{"vocab_size", 32000},
            {"hidden_size", 4096},
            {"intermediate_size", 14336},
            {"num_hidden_layers", 32},
            {"num_attention_heads", 32},
            {"num_key_value_heads", 8},
            {"max_position_embeddings", 131072}};
  if (type == "gemma")
    return {{"vocab_size", 256000},
            {"hidden_size", 3072},
            {"intermediate_size", 24576},
            {"num_hidden_layers", 28},
            {"num_attention_heads", 16},
            {"num_key_value_heads", 16},
            {"head_dim", 256},
            {"max_position_embeddings", 8192}};
  if (type == "gemma2")
    return {{"vocab_size", 256000},      {"hidden_size", 2304},
            {"intermediate_size", 9216}, {"num_hidden_layers", 26},
            {"num_attention_heads", 8},  {"num_key_value_heads", 4},
            {"head_dim", 256},           {"max_position_embeddings", 8192}};
  if (type == "cohere2")
    return {{"vocab_size", 256000},    {"hidden_size", 8192},       {"intermediate_size", 22528},
            {"num_hidden_layers", 40}, {"num_attention_heads", 64}, {"max_position_embeddings", 8192}};
  if (type == "qwen2")
    return {{"vocab_size", 151936},
            {"hidden_size", 4096},
            {"intermediate_size", 22016},
            {"num_hidden_layers", 32},
            {"num_attention_heads", 32},
            {"num_key_value_heads", 32},
            {"max_position_embeddings", 32768}};
  return {};
}

ModelConfig text_config(const ConfigReader& json, const TextHalf& half) {
  const auto nested = json.object("text_config");
  if (!nested && !half.flat) throw json.error("text_config", "the configuration of the half that reads text", "none");
  std::string type = half.types.front();
  if (nested) type = nested->text("model_type", type);
  if (std::ranges::find(half.types, type) == half.types.end())
    throw nested->error("model_type", fmt::format("one of {}", fmt::join(half.types, ", ")), type,
                        "the half that reads text is of another family");
  ConfigReader text = (nested ? *nested : json).with_defaults(half.map ? half.usual : usual_numbers(type));
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
  if (half.tied)
    config.tied_embeddings = json.flag("tie_word_embeddings", *half.tied);
  else if (!text.has("tie_word_embeddings") || !config.tied_embeddings)
    config.tied_embeddings = json.flag("tie_word_embeddings", config.tied_embeddings);
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
    const TextSource text(source);
    return half.map ? read_usual_weights(text, config, half.names(config))
                    : family(config.text_family, source.where()).read_weights(text, config);
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
    }
    json.put("architectures", std::vector<std::string>{half.architecture});
    json.put("model_type", half.model_type);
    json.put("tie_word_embeddings", config.tied_embeddings);
    json.put("text_config", text);
    return json.text();
  };
  return made;
}

}  // namespace headscope
