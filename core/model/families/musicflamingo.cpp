// Music Flamingo (Ghosh et al., Music Flamingo: Scaling Music Understanding in Audio Language Models, 2025), of which
// the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family musicflamingo_family();  // declared with all others in family.cpp
Family musicflamingo_family() {
  Family made = text_half_family({.model_type = "musicflamingo",
                                  .architecture = "MusicFlamingoForConditionalGeneration",
                                  .summary = to_say("as qwen2: the half that reads text, sounds are not read"),
                                  .types = {"qwen2"}});
  made.read_config = [half = made.read_config](const ConfigReader& json) {
    (void)json.has("rope_parameters");  // those beside text_config turn sounds by their time
    return half(json);
  };
  return made;
}

}  // namespace headscope
