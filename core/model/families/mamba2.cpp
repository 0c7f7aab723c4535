// Mamba-2 (Dao & Gu, Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space
// Duality, 2024): a state space with heads, each with one step and one decay, and a norm behind its gate.

#include <string>

#include "core/base/words.h"
#include "core/model/families/hybrid.h"
#include "core/model/families/mamba.h"

namespace headscope {

namespace limit = config_limits;

namespace {
void mamba2_keys(ConfigMap& keys, ModelConfig& c) {
  mamba_keys(keys, c, StateSpaceConfig::Lane::head);
  ModelDims& d = c.dims;
  keys.integer("num_heads", d.heads, 1, limit::heads, 128);
  keys.integer("head_dim", d.d_head, 1, limit::d_head, 64);
  keys.integer("n_groups", d.state_groups, 1, limit::heads, 8);
  step_limits(keys, *c.state_space);
  if (!keys.reading()) return;
  if (d.heads * d.d_head != d.d_inner)
    throw keys.json().error("head_dim", "with num_heads the width expand · hidden_size = " + std::to_string(d.d_inner),
                            std::to_string(d.heads) + " · " + std::to_string(d.d_head));
  if (d.heads % d.state_groups != 0)
    throw keys.json().error("n_groups", "a divisor of num_heads = " + std::to_string(d.heads),
                            std::to_string(d.state_groups));
  c.state_space->gated_norm = true;
  d.kv_heads = d.lanes = d.heads;
  convolved_extents(keys.json(), d, "state_size");
}
}  // namespace

Family mamba2_family();  // declared with all others in family.cpp
Family mamba2_family() {
  return usual_family("mamba2", "Mamba2ForCausalLM", to_say("no attention: a selective state space with heads"),
                      &mamba2_keys, &mamba_names);
}

}  // namespace headscope
