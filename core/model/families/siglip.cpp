// A whole SigLIP, of which the half that sees is read.

#include "core/base/words.h"
#include "core/model/families/vit.h"

namespace headscope {

Family siglip_family();  // declared with all others in family.cpp
Family siglip_family() {
  return seeing_half("siglip", to_say("reads pictures: of SigLIP the half that sees, without the pooling of patches"),
                     &siglip_vision_keys, &siglip_vision_names, 16);
}

}  // namespace headscope
