// Audio Flamingo 3 (Goel et al., Audio Flamingo 3: Advancing Audio Intelligence with Fully Open Large Audio Language
// Models, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family audioflamingo3_family();  // declared with all others in family.cpp
Family audioflamingo3_family() {
  return text_half_family({.model_type = "audioflamingo3",
                           .architecture = "AudioFlamingo3ForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, sounds are not read"),
                           .types = {"qwen2"}});
}

}  // namespace headscope
