#include "core/model/expert_keys.h"

#include <fmt/format.h>

#include <algorithm>

namespace headscope {

namespace {
constexpr int most_experts = 4096;
}

void expert_keys(ConfigMap& keys, ModelConfig& c, const ExpertKeys& names) {
  ExpertConfig& e = c.experts;
  const bool other =
      keys.reading() && !names.count_too.empty() && !keys.json().has(names.count) && keys.json().has(names.count_too);
  const auto usual = [](int number) { return number > 0 ? std::optional(number) : std::nullopt; };
  keys.integer(other ? names.count_too : names.count, e.count, 1, most_experts, usual(names.usual_count));
  if (keys.reading() && !other && !names.count_too.empty() && keys.json().has(names.count_too))  // both may be told
    if (const int too = keys.json().integer(names.count_too, 1, most_experts); too != e.count)
      throw keys.json().error(names.count_too, fmt::format("{} as {}", e.count, names.count), std::to_string(too));
  keys.integer(names.per_token, e.per_token, 1, most_experts, usual(names.usual_per_token));
  if (names.width.empty())
    e.width = c.dims.d_mlp;
  else
    keys.integer(names.width, e.width, 1, config_limits::d_mlp, names.usual_width);
  if (keys.reading() && e.per_token > e.count)
    throw keys.json().error(names.per_token, fmt::format("at most the {} experts", e.count),
                            std::to_string(e.per_token));
  c.dims.experts = e.count;
}

void sparse_layers(ConfigMap& keys, ModelConfig& c) {
  ExpertConfig& e = c.experts;
  if (!keys.reading()) {
    std::vector<int> dense;
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (!e.at(layer)) dense.push_back(layer);
    keys.put("mlp_only_layers", dense);
    int step = 1;
    return keys.integer("decoder_sparse_step", step, 1, 1, 1);
  }
  const auto dense = keys.json().integers("mlp_only_layers", 0, config_limits::layers);
  const int step = keys.json().integer("decoder_sparse_step", 1, config_limits::layers, 1);
  for (int layer = 0; layer < c.dims.layers; ++layer)
    e.layers.push_back((layer + 1) % step == 0 && (!dense || std::ranges::count(*dense, layer) == 0));
  if (!e.anywhere()) c.dims.experts = 0;
  if (std::ranges::count(e.layers, false) == 0) e.layers.clear();
}

namespace {
/// What of the layers that a file told of is kept: nothing where all have experts.
void settle_layers(ModelConfig& c) {
  if (!c.experts.anywhere()) c.dims.experts = 0;
  if (!c.experts.leaves_dense(c.dims.layers)) c.experts.layers.clear();
}
}  // namespace

void first_layers_dense(ConfigMap& keys, ModelConfig& c, const std::string& key, int usual) {
  int dense = 0;
  while (!keys.reading() && dense < c.dims.layers && !c.experts.at(dense)) ++dense;
  keys.integer(key, dense, 0, config_limits::layers, usual);
  if (!keys.reading()) return;
  for (int layer = 0; layer < c.dims.layers; ++layer) c.experts.layers.push_back(layer >= dense);
  settle_layers(c);
}

void listed_sparse_layers(ConfigMap& keys, ModelConfig& c, int usual_dense) {
  constexpr const char* key = "mlp_layer_types";
  if (!keys.reading()) {
    std::vector<std::string> types;
    for (int layer = 0; layer < c.dims.layers; ++layer) types.emplace_back(c.experts.at(layer) ? "sparse" : "dense");
    return keys.put(key, types);
  }
  const auto types = keys.json().texts(key);
  if (!types) return first_layers_dense(keys, c, "first_k_dense_replace", usual_dense);
  (void)keys.json().has("first_k_dense_replace");  // the list comes first
  if (static_cast<int>(types->size()) != c.dims.layers)
    throw keys.json().error(key, fmt::format("a kind for each of {} layers", c.dims.layers),
                            std::to_string(types->size()));
  for (const std::string& type : *types)
    c.experts.layers.push_back(keys.json().choice<bool>(key, type, {{"sparse", true}, {"dense", false}}));
  settle_layers(c);
}

}  // namespace headscope
