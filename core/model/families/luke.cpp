// LUKE and mLUKE (Yamada et al., LUKE: Deep Contextualized Entity Representations with Entity-aware Self-attention,
// 2020): RoBERTa that reads entities beside words, with queries of their own. Of words alone these are not used.

#include <string>

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
WeightNames luke_names(const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  names.prefixes = {"luke.", ""};
  for (const char* of : {"w2e", "e2w", "e2e"})
    for (const char* part : {"_query.weight", "_query.bias"})
      names.ignored.push_back(std::string("attention.self.") + of + part);
  return names;
}

/// Newer versions of the library keep an unembedding of its own whatever config.json says.
void check_tied(const WeightSource& source, const ModelConfig& c, const RawWeights& weights) {
  const std::string name = "lm_head.decoder.weight";
  if (!c.predicts || !c.tied_embeddings || !source.contains(name)) return;
  const Tensor own = source.take(name, {c.dims.vocab, c.dims.d_model});
  for (Index id = 0; id < c.dims.vocab; ++id)
    for (Index i = 0; i < c.dims.d_model; ++i)
      if (own.at(id, i) != weights.token_embedding.at(id, i))
        throw Error(source.where() + ": tensor " + name, "the embedding again, as config.json says",
                    "another number for token " + std::to_string(id),
                    "say \"tie_word_embeddings\": false in config.json");
}
}  // namespace

Family luke_family();  // declared with all others in family.cpp
Family luke_family() {
  Family made = usual_family("luke", "LukeForMaskedLM", to_say("an encoder: RoBERTa, of words without entities"),
                             &roberta_keys, &luke_names);
  made.read_weights = [](const WeightSource& source, const ModelConfig& c) {
    RawWeights weights = read_usual_weights(source, c, luke_names(c));
    check_tied(source, c, weights);
    return weights;
  };
  return made;
}

}  // namespace headscope
