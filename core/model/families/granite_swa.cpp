// Granite with windows (Granite Team, Granite SWASH, 2026): Granite, three layers of four with a window, a learned sink
// in every softmax, and a base of rotation that every layer may have of its own.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/families/granite.h"

namespace headscope {

namespace {
/// layer_rope_theta: a base for every layer; 0 = it does not rotate.
void bases_of_layers(ConfigMap& keys, ModelConfig& c) {
  constexpr const char* key = "layer_rope_theta";
  std::vector<double> bases;
  if (!keys.reading()) {
    for (int layer = 0; layer < c.dims.layers; ++layer) bases.push_back(c.turns(layer) ? c.rotary_of(layer).base : 0);
    return keys.put(key, bases);
  }
  if (!keys.json().has(key)) return;
  bases = keys.json().numbers(key, 0, 1e12);
  if (static_cast<int>(bases.size()) != c.dims.layers)
    throw keys.json().error(key, fmt::format("a number for each of {} layers", c.dims.layers),
                            std::to_string(bases.size()));
  for (const double base : bases) {
    if (base != 0 && base < 1) throw keys.json().error(key, "0, or bases of 1 or more", fmt::format("{}", base));
    c.layer_rotary.push_back(c.rotary);
    if (base != 0) c.layer_rotary.back().base = base;
    c.layer_turns.push_back(base != 0);
  }
  if (std::ranges::count(c.layer_turns, false) == 0) c.layer_turns.clear();
  const auto first = std::ranges::find_if(bases, [](double base) { return base != 0; });
  if (first != bases.end()) c.rotary.base = *first;
  const bool alike = std::ranges::all_of(bases, [&](double base) { return base == 0 || base == c.rotary.base; });
  if (alike) c.layer_rotary.clear();
}
}  // namespace

void granite_windows(ConfigMap& keys, ModelConfig& c) {
  c.learned_sinks = true;
  int window = 0;
  if (keys.reading() && !keys.json().null("sliding_window"))
    window = keys.json().integer("sliding_window", 0, config_limits::context, 128);
  keys.layer_types(c, window, [](int layer) { return layer % 4 != 0; });
  bases_of_layers(keys, c);
}

namespace {
void granite_swa_keys(ConfigMap& keys, ModelConfig& c) {
  granite_stream(keys, c, {.epsilon = 1e-5, .kv_heads = 4, .tied = true});
  keys.biases(c, "attention_bias", "mlp_bias");
  granite_windows(keys, c);
}
}  // namespace

Family granite_swa_family();  // declared with all others in family.cpp
Family granite_swa_family() {
  return usual_family("granite_swa", "GraniteSWAForCausalLM",
                      to_say("as granite, with windows and a learned sink in every softmax"), &granite_swa_keys,
                      &usual_names);
}

}  // namespace headscope
