// Mamba-2 (Dao & Gu, Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space
// Duality, 2024): a state space with heads, each with one step and one decay, and a norm behind its gate.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/model/families/mamba.h"

namespace headscope {

namespace limit = config_limits;

namespace {
/// [least, most] of a step; most may be Infinity.
void step_limits(ConfigMap& keys, StateSpaceConfig& s) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), huge = std::numeric_limits<double>::max();
  if (!keys.reading()) {
    if (s.least_step > 0 || std::isfinite(s.most_step))
      keys.put("time_step_limit", std::vector<double>{s.least_step, std::min(s.most_step, huge)});
    return;
  }
  if (!keys.json().has("time_step_limit")) return;
  const std::vector<double> both = keys.json().numbers("time_step_limit", 0, infinity);
  if (both.size() != 2 || both[0] > both[1])
    throw keys.json().error("time_step_limit", "the least step and the most",
                            std::to_string(both.size()) + " numbers, or the least above the most");
  s.least_step = both[0];
  s.most_step = both[1] >= huge ? infinity : both[1];
}

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
  d.convolved = d.d_inner + 2 * d.state_groups * d.d_state;
}
}  // namespace

Family mamba2_family();  // declared with all others in family.cpp
Family mamba2_family() {
  return usual_family("mamba2", "Mamba2ForCausalLM", to_say("no attention: a selective state space with heads"),
                      &mamba2_keys, &mamba_names);
}

}  // namespace headscope
