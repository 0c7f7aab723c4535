// DINOv2 with registers (Darcet et al., Vision Transformers Need Registers, 2024): tokens that are learned and have no
// place in the picture, in which attention may keep what it would else write over patches of the background.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

namespace {
void dinov2_with_registers_keys(ConfigMap& keys, ModelConfig& c) {
  int registers = c.vision ? c.vision->registers : 0;
  keys.integer("num_register_tokens", registers, 0, 1024, 4);
  if (keys.reading()) {
    c.vision.emplace();
    c.vision->registers = registers;
    c.vision->leading = 1 + registers;
    c.vision->smooth_positions = true;
  }
  dinov2_keys(keys, c);
}

WeightNames dinov2_with_registers_names(const ModelConfig& c) {
  WeightNames names = dinov2_names(c);
  names.prefixes = {"dinov2_with_registers.", ""};
  names.registers = "embeddings.register_tokens";
  return names;
}
}  // namespace

Family dinov2_with_registers_family();  // declared with all others in family.cpp
Family dinov2_with_registers_family() {
  return usual_family("dinov2_with_registers", "Dinov2WithRegisters",
                      to_say("reads pictures: DINOv2 with learned tokens beside the patches"),
                      &dinov2_with_registers_keys, &dinov2_with_registers_names);
}

}  // namespace headscope
