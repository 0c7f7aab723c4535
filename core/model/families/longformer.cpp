// Longformer (Beltagy et al., Longformer: The Long-Document Transformer, 2020): RoBERTa whose tokens see a window on
// either side, of every layer's own width. Tasks let some tokens see all and be seen by all, by matrices of their own;
// masked tokens are told without, and so it is read.

#include "core/model/families/longformer.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

void windows_on_either_side(ConfigMap& keys, ModelConfig& c) {
  const std::string key = "attention_window";  // both sides together
  if (!keys.reading()) {
    std::vector<int> both;
    for (const int window : c.windows) both.push_back(2 * (window - 1));
    return keys.put(key, both);
  }
  const ConfigReader& json = keys.json();
  std::vector<int> both;
  if (json.is_list(key))
    both = json.integers(key, 2, config_limits::context).value_or(both);
  else
    both.assign(static_cast<std::size_t>(c.dims.layers), json.integer(key, 2, config_limits::context, 512));
  if (static_cast<int>(both.size()) != c.dims.layers)
    throw json.error(key, fmt::format("a number, or one for each of {} layers", c.dims.layers),
                     std::to_string(both.size()));
  for (const int window : both) {
    if (window % 2 != 0) throw json.error(key, "an even number of tokens, half on either side", std::to_string(window));
    c.windows.push_back(window / 2 + 1);
  }
}

namespace {
void longformer_keys(ConfigMap& keys, ModelConfig& c) {
  roberta_keys(keys, c);
  windows_on_either_side(keys, c);
}

WeightNames longformer_names(const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  names.prefixes = {"longformer.", ""};
  for (const char* of : {"query_global", "key_global", "value_global"})
    for (const char* part : {".weight", ".bias"}) names.ignored.push_back(std::string("attention.self.") + of + part);
  return names;
}
}  // namespace

Family longformer_family();  // declared with all others in family.cpp
Family longformer_family() {
  return usual_family("longformer", "LongformerForMaskedLM",
                      to_say("an encoder: RoBERTa whose tokens see a window on either side"), &longformer_keys,
                      &longformer_names);
}

}  // namespace headscope
