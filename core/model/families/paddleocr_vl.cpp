// PaddleOCR-VL (Cui et al., PaddleOCR-VL: Boosting Multilingual Document Parsing via a 0.9B Ultra-Compact Vision-
// Language Model, 2025), of which the half that reads text is read: as ERNIE 4.5, with halves of heads rotated; its
// rotation knows time, height and width, which are one position in a text.

#include "core/base/words.h"
#include "core/model/families/ernie4_5.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
void paddleocr_vl_keys(ConfigMap& keys, ModelConfig& c) {
  ernie4_5_like(keys, c, RotaryLayout::half_split);
}
}  // namespace

Family paddleocr_vl_family();  // declared with all others in family.cpp
Family paddleocr_vl_family() {
  return text_half_family(
      {.model_type = "paddleocr_vl",
       .architecture = "PaddleOCRVLForConditionalGeneration",
       .summary = to_say("as ernie4_5, halves rotated: the half that reads text, pictures are not read"),
       .types = {"paddleocr_vl_text"},
       .map = &paddleocr_vl_keys,
       .names = &usual_names,
       .usual = {{"vocab_size", 103424},
                 {"hidden_size", 1024},
                 {"intermediate_size", 3072},
                 {"num_hidden_layers", 18},
                 {"num_attention_heads", 16},
                 {"num_key_value_heads", 2},
                 {"max_position_embeddings", 131072}},
       .flat = true,
       .tied = true});
}

}  // namespace headscope
