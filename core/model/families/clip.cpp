// A whole CLIP, of which the half that sees is read: its keys stand in vision_config.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

Family clip_family();  // declared with all others in family.cpp
Family clip_family() {
  Family family = usual_family("clip", "CLIP", to_say("reads pictures: of CLIP the half that sees, without classes"),
                               &clip_vision_keys, &clip_vision_names);
  family.read_config = [](const ConfigReader& json) {
    const auto vision = json.object("vision_config");
    if (!vision) throw json.error("vision_config", "the configuration of the half that sees", "none");
    // Files of the years before leave out what they have as everybody had it: a ViT-B/32.
    const ConfigReader whole = vision->with_defaults({{"hidden_size", 768},
                                                      {"intermediate_size", 3072},
                                                      {"num_hidden_layers", 12},
                                                      {"num_attention_heads", 12},
                                                      {"image_size", 224},
                                                      {"patch_size", 32}});
    ModelConfig config;
    ConfigMap keys(whole);
    clip_vision_keys(keys, config);
    return config;
  };
  family.write_config = [](const ModelConfig& config) {
    ConfigWriter json, vision;
    ModelConfig copy = config;
    ConfigMap keys(vision);
    clip_vision_keys(keys, copy);
    json.put("model_type", "clip");
    json.put("vision_config", vision);
    return json.text();
  };
  return family;
}

}  // namespace headscope
