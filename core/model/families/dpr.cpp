// DPR (Karpukhin et al., Dense Passage Retrieval for Open-Domain Question Answering, 2020): a BERT that reads
// questions, one that reads passages, and one that reads both; none of them says masked tokens.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

Family dpr_family();  // declared with all others in family.cpp
Family dpr_family() {
  return usual_family(
      "dpr", "DPRForQuestionEncoder", to_say("an encoder: BERT that finds passages, without logits"),
      [](ConfigMap& keys, ModelConfig& c) {
        bert_keys(keys, c);
        c.predicts = false;
      },
      [](const ModelConfig&) {
        WeightNames names = bert_names("question_encoder.bert_model.");
        names.prefixes = {"question_encoder.bert_model.", "ctx_encoder.bert_model.",
                          "span_predictor.encoder.bert_model.", "bert_model.", ""};
        return names;
      });
}

}  // namespace headscope
