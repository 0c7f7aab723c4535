// ESM-1b and ESM-2 (Rives et al., Biological structure and function emerge from scaling unsupervised learning to 250
// million protein sequences, 2021; Lin et al., Evolutionary-scale prediction of atomic-level protein structure with a
// language model, 2023): encoders of proteins, whose tokens are residues. Norms before, positions that are rotated or
// learned; masked tokens were dropped in training, so that those of a text that has none are multiplied by the share
// that was left.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
/// Of 15 % of all residues 80 % were masked.
constexpr double left_in_training = 1 - 0.15 * 0.8;

void esm_positions(ConfigMap& keys, ModelConfig& c) {
  std::string kind = c.position == PositionKind::rotary ? "rotary" : "absolute";
  keys.text("position_embedding_type", kind, "absolute");
  int padding = c.position_offset > 0 ? c.position_offset - 1 : 1;
  keys.integer("pad_token_id", padding, 0, config_limits::vocab, 1);
  if (kind == "rotary") {
    c.position = PositionKind::rotary;
    keys.number("rope_theta", c.rotary.base, 1, 1e12, 10000);
    if (keys.reading() && c.dims.d_head % 2 != 0)
      throw keys.json().error("hidden_size / num_attention_heads", "an even number, since rotary positions turn pairs",
                              std::to_string(c.dims.d_head));
    return;
  }
  if (!keys.reading()) return;
  if (kind != "absolute")
    throw keys.json().error("position_embedding_type", "\"rotary\" or \"absolute\"", "\"" + kind + "\"");
  c.position = PositionKind::learned;
  c.position_offset = padding + 1;
  if (c.context <= c.position_offset)
    throw keys.json().error("max_position_embeddings", "more than pad_token_id + 1, where positions begin",
                            std::to_string(c.context));
  c.context -= c.position_offset;
}

void esm_keys(ConfigMap& keys, ModelConfig& c) {
  if (!keys.reading()) c.context += c.position_offset;
  keys.extents(c, {.kv_heads = "", .d_head = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-12);
  esm_positions(keys, c);
  keys.flag("emb_layer_norm_before", c.embedding_norm, false);
  bool dropout = c.dropped_token.has_value();
  keys.flag("token_dropout", dropout, false);
  if (dropout) keys.token("mask_token_id", c.dropped_token, c.dims.vocab);
  keys.only("is_folding_model", false, "a model that folds is not read");
  keys.only("is_decoder", false, "an ESM that writes is not read");
  if (keys.reading()) {
    if (dropout && !c.dropped_token) throw keys.json().error("mask_token_id", "the token that was dropped", "none");
    c.embedding_scale = dropout ? left_in_training : 1;
    c.norm_of_embeddings = c.embedding_norm;
    c.causal = false;
    c.activation = c.head_activation = Activation::gelu;  // whatever hidden_act says
    c.head_layer = true;
    c.bias.unembedding = true;
    keys.predicts(c);
  }
  keys.ends(c, true);
}

WeightNames esm_names(const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  names.prefixes = {"esm.", ""};
  names.embedding_norm = "embeddings.layer_norm";
  names.ln1 = "attention.LayerNorm";
  names.ln2 = "LayerNorm";
  names.final_norm = "encoder.emb_layer_norm_after";
  names.ignored = {"attention.self.rotary_embeddings.inv_freq"};
  return names;
}
}  // namespace

Family esm_family();  // declared with all others in family.cpp
Family esm_family() {
  return usual_family("esm", "EsmForMaskedLM",
                      to_say("an encoder of proteins: norms before, rotary or learned positions"), &esm_keys,
                      &esm_names);
}

}  // namespace headscope
