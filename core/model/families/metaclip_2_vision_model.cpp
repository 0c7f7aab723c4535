// The half of MetaCLIP 2 that sees (Chuang et al., MetaCLIP 2: A Worldwide Scaling Recipe, 2025): as CLIP's.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

Family metaclip_2_vision_model_family();  // declared with all others in family.cpp
Family metaclip_2_vision_model_family() {
  return usual_family("metaclip_2_vision_model", "MetaClip2Vision",
                      to_say("reads pictures: MetaCLIP 2's half that sees, without classes"), &clip_vision_keys,
                      &clip_vision_names);
}

}  // namespace headscope
