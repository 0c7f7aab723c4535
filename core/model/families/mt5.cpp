// mT5 (Xue et al., mT5: A Massively Multilingual Pre-trained Text-to-Text Transformer, 2021): T5 1.1 with another
// vocabulary.

#include "core/base/words.h"
#include "core/model/families/t5.h"

namespace headscope {

namespace {
void mt5_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  t5_like(keys, decoder, encoder, "gated-gelu", false);
}
}  // namespace

Family mt5_family();  // declared with all others in family.cpp
Family mt5_family() {
  return two_stack_family("mt5", "MT5ForConditionalGeneration", to_say("an encoder-decoder: T5 1.1 in many languages"),
                          &mt5_keys, &t5_names);
}

}  // namespace headscope
