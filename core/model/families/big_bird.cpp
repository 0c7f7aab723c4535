// BigBird (Zaheer et al., Big Bird: Transformers for Longer Sequences, 2020): BERT whose tokens see, in long texts, a
// few blocks of others. Up to (5 + 2 · random blocks) · block size tokens every token sees all, and such texts are
// read.

#include "core/model/families/big_bird.h"

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

void seen_whole(ConfigMap& keys, ModelConfig& c) {
  std::string kind = c.block_size > 0 ? "block_sparse" : "original_full";
  keys.text("attention_type", kind, "block_sparse");
  if (kind == "original_full") return;
  if (keys.reading() && kind != "block_sparse")
    throw keys.json().error("attention_type", "\"block_sparse\" or \"original_full\"", "\"" + kind + "\"");
  keys.integer("block_size", c.block_size, 1, 1 << 16, 64);
  keys.integer("num_random_blocks", c.random_blocks, 0, 1 << 12, 3);
  if (!keys.reading()) return;
  const int whole = std::min(c.context, (5 + 2 * c.random_blocks) * c.block_size);
  c.position_tail = c.context - whole;
  c.context = whole;
}

namespace {
void big_bird_keys(ConfigMap& keys, ModelConfig& c) {
  if (!keys.reading()) c.context += c.position_tail;
  bert_keys(keys, c, "gelu_new");
  keys.flag("use_bias", c.bias.q, true);
  c.bias.k = c.bias.v = c.bias.q;
  bool scaled = c.embedding_scale != 1;
  keys.flag("rescale_embeddings", scaled, false);
  if (keys.reading() && scaled) c.embedding_scale = std::sqrt(static_cast<double>(c.dims.d_model));
  seen_whole(keys, c);
}
}  // namespace

Family big_bird_family();  // declared with all others in family.cpp
Family big_bird_family() {
  return usual_family("big_bird", "BigBirdForMaskedLM",
                      to_say("an encoder: BERT; of texts that are short enough to be seen whole"), &big_bird_keys,
                      [](const ModelConfig&) { return bert_names("bert."); });
}

}  // namespace headscope
