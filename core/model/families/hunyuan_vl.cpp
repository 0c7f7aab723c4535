// HunyuanOCR and HunYuan-VL (Tencent, HunyuanOCR Technical Report, 2025), of which the half that reads text is read:
// its rotation knows four positions, which are one in a text.

#include "core/base/words.h"
#include "core/model/families/hunyuan.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
void hunyuan_vl_keys(ConfigMap& keys, ModelConfig& c) {
  hunyuan_keys(keys, c);
  if (!keys.reading()) return;
  // Files spell these twice.
  for (const auto& [key, value] : {std::pair("attention_head_dim", c.dims.d_head), {"org_vocab_size", c.dims.vocab}})
    if (const int found = keys.json().integer(key, 1, config_limits::vocab, value); found != value)
      throw keys.json().error(key, std::to_string(value), std::to_string(found), "the file says both");
}
}  // namespace

Family hunyuan_vl_family();  // declared with all others in family.cpp
Family hunyuan_vl_family() {
  return text_half_family({.model_type = "hunyuan_vl",
                           .architecture = "HunYuanVLForConditionalGeneration",
                           .summary = to_say("as hunyuan_v1_dense: the half that reads text, pictures are not read"),
                           .types = {"hunyuan_vl_text"},
                           .map = &hunyuan_vl_keys,
                           .names = &hunyuan_names,
                           .usual = {{"vocab_size", 290943},
                                     {"hidden_size", 4096},
                                     {"intermediate_size", 11008},
                                     {"num_hidden_layers", 32},
                                     {"num_attention_heads", 32},
                                     {"max_position_embeddings", 2048}},
                           .flat = true,
                           .tied = true});
}

}  // namespace headscope
