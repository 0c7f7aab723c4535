// PaliGemma (Beyer et al., PaliGemma: A versatile 3B VLM for transfer, 2024) and PaliGemma 2 (Steiner et al., 2024), of
// which the half that reads text is read: Gemma, or Gemma 2. It was trained on texts whose beginning, a picture and
// what is asked of it, sees itself both ways: that is the mask "prefix P" of its rows, which an edit sets ("*@0..6:
// mask prefix 7"). By itself a text is seen as transformers sees one that nobody says the beginning of, causally.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family paligemma_family();  // declared with all others in family.cpp
Family paligemma_family() {
  return text_half_family(
      {.model_type = "paligemma",
       .architecture = "PaliGemmaForConditionalGeneration",
       .summary =
           to_say("as gemma or gemma2: the half that reads text, pictures are not read; \"prefix P\" is the mask "
                  "of what is asked"),
       .types = {"gemma", "gemma2"},
       .of_pictures = "use_bidirectional_attention",
       .ties = true});
}

}  // namespace headscope
