// LayoutLM (Xu et al., LayoutLM: Pre-training of Text and Layout for Document Image Understanding, 2020): BERT with
// embeddings of where on a page a word stands. Of text alone that is a box of size 0 in the corner, as transformers has
// it where no boxes are given.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

Family layoutlm_family();  // declared with all others in family.cpp
Family layoutlm_family() {
  return usual_family(
      "layoutlm", "LayoutLMForMaskedLM", to_say("an encoder: BERT for documents, of their text alone"),
      [](ConfigMap& keys, ModelConfig& c) {
        bert_keys(keys, c);
        keys.integer("max_2d_position_embeddings", c.tasks, 1, 1 << 16, 1024);
        c.task_tables = 4;
      },
      [](const ModelConfig&) {
        WeightNames names = bert_names("layoutlm.");
        // Left and right, top and bottom, height and width.
        for (const auto& [of, often] : {std::pair("x", 2), {"y", 2}, {"h", 1}, {"w", 1}})
          names.tasks.emplace_back(std::string("embeddings.") + of + "_position_embeddings", often);
        return names;
      });
}

}  // namespace headscope
