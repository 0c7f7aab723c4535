// A whole CLIP, of which the half that sees is read.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

Family seeing_half(std::string model_type, std::string summary, void (*map)(ConfigMap& keys, ModelConfig& config),
                   WeightNames (*names)(const ModelConfig& config), int patch) {
  Family family = usual_family(model_type, "", std::move(summary), map, names);
  family.read_config = [map, patch](const ConfigReader& json) {
    const auto vision = json.object("vision_config");
    if (!vision) throw json.error("vision_config", "the configuration of the half that sees", "none");
    // Files leave out what they have as everybody had it: a ViT-B.
    const ConfigReader whole = vision->with_defaults({{"hidden_size", 768},
                                                      {"intermediate_size", 3072},
                                                      {"num_hidden_layers", 12},
                                                      {"num_attention_heads", 12},
                                                      {"image_size", 224},
                                                      {"patch_size", patch}});
    ModelConfig config;
    ConfigMap keys(whole);
    map(keys, config);
    return config;
  };
  family.write_config = [map, model_type](const ModelConfig& config) {
    ConfigWriter json, vision;
    ModelConfig copy = config;
    ConfigMap keys(vision);
    map(keys, copy);
    json.put("model_type", model_type);
    json.put("vision_config", vision);
    return json.text();
  };
  return family;
}

Family clip_family();  // declared with all others in family.cpp
Family clip_family() {
  return seeing_half("clip", to_say("reads pictures: of CLIP the half that sees, without classes"), &clip_vision_keys,
                     &clip_vision_names, 32);
}

}  // namespace headscope
