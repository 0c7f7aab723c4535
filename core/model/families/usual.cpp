#include "core/model/families/usual.h"

#include <utility>

namespace headscope {

WeightNames usual_names(const ModelConfig&) {
  return {};
}

void extents_of_width(ConfigMap& keys, ModelConfig& c, int d_head, const ConfigMap::Extents& names) {
  if (!keys.reading()) return keys.extents(c, names);
  const ConfigReader filled = keys.json().with_defaults({{"head_dim", d_head}});
  ConfigMap(filled).extents(c, names);
}

ConfigMap::Extents gpt2_extents() {
  return {.layers = "n_layer",
          .heads = "n_head",
          .kv_heads = "",
          .width = "n_embd",
          .d_head = "",
          .mlp = "n_inner",
          .context = "n_positions",
          .mlp_factor = 4};
}

WeightNames gpt2_names() {
  WeightNames names;
  names.prefixes = {"transformer.", ""};
  names.embedding = "wte";
  names.block = "h.";
  names.ln1 = "ln_1";
  names.final_norm = "ln_f";
  return names;
}

Family with_older_names(Family made, std::string older, std::string newer,
                        WeightNames (*names)(const ModelConfig& config)) {
  made.read_weights = [today = made.read_weights, older = std::move(older), newer = std::move(newer), names](
                          const WeightSource& source, const ModelConfig& config) {
    const auto there = [&](const std::string& name) {
      return source.contains(name) || source.contains("model." + name);
    };
    return there(older) && !there(newer) ? read_usual_weights(source, config, names(config)) : today(source, config);
  };
  return made;
}

Family usual_family(std::string model_type, std::string architecture, std::string summary,
                    void (*map)(ConfigMap& keys, ModelConfig& config),
                    WeightNames (*names)(const ModelConfig& config)) {
  return {model_type,
          std::move(summary),
          [map](const ConfigReader& json) {
            ModelConfig config;
            ConfigMap keys(json);
            map(keys, config);
            return config;
          },
          [names](const WeightSource& source, const ModelConfig& config) {
            return read_usual_weights(source, config, names(config));
          },
          [map, model_type, architecture = std::move(architecture)](const ModelConfig& config) {
            ConfigWriter json;
            const std::string bare = architecture.substr(0, architecture.rfind("For")) + "Model";
            json.put("architectures", std::vector<std::string>{config.predicts ? architecture : bare});
            json.put("model_type", model_type);
            ConfigMap keys(json);
            ModelConfig copy = config;
            map(keys, copy);
            return json.text();
          },
          [names](const ModelConfig& config) {
            const WeightNames own = names(config);
            std::vector<std::string> heads{own.head + ".weight"};
            if (!own.head_too.head.empty()) heads.push_back(own.head_too.head + ".weight");
            return heads;
          }};
}

}  // namespace headscope
