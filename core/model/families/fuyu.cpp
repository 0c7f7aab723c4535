// Fuyu-8B (Adept AI, 2023), of which the half that reads text is read. Its published file has the keys of that half
// beside all others.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family fuyu_family();  // declared with all others in family.cpp
Family fuyu_family() {
  return text_half_family({.model_type = "fuyu",
                           .architecture = "FuyuForCausalLM",
                           .summary = to_say("as persimmon: the half that reads text, pictures are not read"),
                           .types = {"persimmon"},
                           .flat = true});
}

}  // namespace headscope
