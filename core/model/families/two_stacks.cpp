#include "core/model/families/two_stacks.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace headscope {

namespace {
/// Which of the two it is, and what that means.
void tell_apart(ModelConfig& decoder, ModelConfig& encoder) {
  encoder.stack = Stack::encoder;
  encoder.causal = encoder.predicts = false;
  decoder.stack = Stack::decoder;
  decoder.encoder = std::make_shared<const ModelConfig>(encoder);
}

/// Files of a bare model, or of a classifier, have no matrix to logits.
void predicts(const ConfigReader& json, ModelConfig& c) {
  const auto classes = json.texts("architectures");
  c.predicts = !classes || classes->empty() || std::ranges::any_of(*classes, [](const std::string& name) {
    return name.ends_with("ForConditionalGeneration") || name.ends_with("MTModel");
  });
}
}  // namespace

Family two_stack_family(std::string model_type, std::string architecture, std::string summary,
                        void (*map)(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder),
                        WeightNames (*names)(const ModelConfig& stack)) {
  return {model_type, std::move(summary),
          [map](const ConfigReader& json) {
            ModelConfig decoder, encoder;
            ConfigMap keys(json);
            keys.only("is_encoder_decoder", true, "one stack of an encoder-decoder by itself is not read");
            map(keys, decoder, encoder);
            predicts(json, decoder);
            tell_apart(decoder, encoder);
            return decoder;
          },
          [names](const WeightSource& source, const ModelConfig& config) {
            return read_two_stacks(source, config, names(config), names(*config.encoder));
          },
          [map, model_type, architecture = std::move(architecture)](const ModelConfig& config) {
            ConfigWriter json;
            const std::string bare =
                architecture.substr(0, architecture.find(architecture.ends_with("MTModel") ? "MT" : "For")) + "Model";
            json.put("architectures", std::vector<std::string>{config.predicts ? architecture : bare});
            json.put("model_type", model_type);
            ConfigMap keys(json);
            keys.only("is_encoder_decoder", true, "");
            ModelConfig decoder = config, encoder = *config.encoder;
            map(keys, decoder, encoder);
            return json.text();
          }};
}

void start_token(ConfigMap& keys, ModelConfig& decoder, int fallback) {
  int token = decoder.decoder_start;
  keys.integer("decoder_start_token_id", token, 0, decoder.dims.vocab - 1, fallback);
  decoder.decoder_start = token;
}

}  // namespace headscope
