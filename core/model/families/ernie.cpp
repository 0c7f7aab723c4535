// ERNIE (Sun et al., ERNIE 2.0: A Continual Pre-training Framework for Language Understanding, 2020): BERT, from
// version 2.0 on with an embedding of the task it is asked for, which is the first where nobody asks.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void ernie_keys(ConfigMap& keys, ModelConfig& c) {
  bert_keys(keys, c);
  bool tasks = c.tasks > 0;
  keys.flag("use_task_id", tasks, false);
  if (tasks) keys.integer("task_type_vocab_size", c.tasks, 1, 1 << 16, 3);
}

WeightNames ernie_names(const ModelConfig&) {
  WeightNames names = bert_names("ernie.");
  names.tasks = {{"embeddings.task_type_embeddings", 1}};
  return names;
}
}  // namespace

Family ernie_family();  // declared with all others in family.cpp
Family ernie_family() {
  return usual_family("ernie", "ErnieForMaskedLM",
                      to_say("an encoder: BERT, with an embedding of the task in most files"), &ernie_keys,
                      &ernie_names);
}

}  // namespace headscope
