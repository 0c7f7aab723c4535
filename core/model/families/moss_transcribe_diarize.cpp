// MOSS Transcribe Diarize (MOSI, 2026), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family moss_transcribe_diarize_family();  // declared with all others in family.cpp
Family moss_transcribe_diarize_family() {
  return text_half_family({.model_type = "moss_transcribe_diarize",
                           .architecture = "MossTranscribeDiarizeForConditionalGeneration",
                           .summary = to_say("as qwen3: the half that reads text, sounds are not read"),
                           .types = {"qwen3"},
                           .tied = true});
}

}  // namespace headscope
