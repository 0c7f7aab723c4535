// A whole MetaCLIP 2 (Chuang et al., MetaCLIP 2: A Worldwide Scaling Recipe, 2025), of which the half that sees is
// read. It is CLIP's.

#include "core/base/words.h"
#include "core/model/families/vit.h"

namespace headscope {

Family metaclip_2_family();  // declared with all others in family.cpp
Family metaclip_2_family() {
  return seeing_half("metaclip_2", to_say("reads pictures: of MetaCLIP 2 the half that sees, without classes"),
                     &clip_vision_keys, &clip_vision_names, 32);
}

}  // namespace headscope
