// Granite Speech (Saon et al., Granite-speech: open-source speech-aware LLMs with strong English ASR capabilities,
// 2025), of which the half that reads text is read. Its low-rank adapters are for sounds: a text alone goes past them.
// Logits are divided as Granite's are; transformers 5's class of both halves leaves that out.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family granite_speech_family();  // declared with all others in family.cpp
Family granite_speech_family() {
  return text_half_family({.model_type = "granite_speech",
                           .architecture = "GraniteSpeechForConditionalGeneration",
                           .summary = to_say("as granite: the half that reads text, sounds are not read"),
                           .types = {"granite"},
                           .tied = true});
}

}  // namespace headscope
