// OPT (Zhang et al., OPT: Open Pre-trained Transformer Language Models, 2022): as GPT-2 with ReLU; the table of
// positions begins two rows before position 0. OPT 350M: norms of every sum, and embeddings narrower than the stream.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void opt_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.kv_heads = "", .d_head = "", .mlp = "ffn_dim"});
  keys.norm(c, NormKind::layer_norm, "", 1e-5);
  c.position = PositionKind::learned;
  c.position_offset = 2;
  keys.activation("activation_function", c.activation, "relu");
  bool biased = c.bias.q;
  keys.flag("enable_bias", biased, true);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = c.bias.up = c.bias.down = biased;
  keys.flag("layer_norm_elementwise_affine", c.norm_weights, true);
  c.bias.norm = c.norm_weights;
  bool before = !c.norms_sums();
  keys.flag("do_layer_norm_before", before, true);
  c.norm_place = before ? NormPlace::before : NormPlace::after_sum;
  keys.only("_remove_final_layer_norm", false, "a model without its last norm is not read");
  int embedded = c.embedding_width > 0 ? c.embedding_width : c.dims.d_model;
  keys.integer("word_embed_proj_dim", embedded, 1, config_limits::d_model, c.dims.d_model);
  c.embedding_width = embedded == c.dims.d_model ? 0 : embedded;
  keys.ends(c, true);
}

WeightNames opt_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"model.decoder.", "decoder.", ""};
  names.positions = "embed_positions";
  names.embedding_in = "project_in";
  names.embedding_out = "project_out";
  names.ln1 = "self_attn_layer_norm";
  names.ln2 = "final_layer_norm";
  names.o = "self_attn.out_proj";
  names.up = "fc1";
  names.down = "fc2";
  names.final_norm = "final_layer_norm";
  return names;
}
}  // namespace

Family opt_family();  // declared with all others in family.cpp
Family opt_family() {
  return usual_family("opt", "OPTForCausalLM", to_say("learned positions from row 2, ReLU"), &opt_keys, &opt_names);
}

}  // namespace headscope
