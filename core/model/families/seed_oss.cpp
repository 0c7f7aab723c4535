// Seed-OSS (ByteDance Seed Team, 2025): as Llama, with biases on queries, keys and values, and heads of a width of
// their own.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void seed_oss_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim") && !keys.json().null("head_dim")) c.dims.d_head = 128;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  bool read = c.bias.q, written = c.bias.o, mlp = c.bias.up;
  keys.flag("attention_bias", read, true);
  keys.flag("attention_out_bias", written, false);
  keys.flag("mlp_bias", mlp, false);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = read;
  c.bias.o = written;
  c.bias.up = c.bias.down = mlp;
  keys.ends(c, false);
}
}  // namespace

Family seed_oss_family();  // declared with all others in family.cpp
Family seed_oss_family() {
  return usual_family("seed_oss", "SeedOssForCausalLM",
                      to_say("as llama, biases on queries, keys and values, heads of a width of their own"),
                      &seed_oss_keys, &usual_names);
}

}  // namespace headscope
