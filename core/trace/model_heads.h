#pragma once
// The heads of a model, whose layers may have different numbers of them (ModelDims::heads_of).

#include <algorithm>
#include <string>
#include <vector>

#include "core/trace/head_id.h"
#include "core/trace/model_info.h"

namespace headscope {

/// Layer by layer: the order of Trace::maps, and of whatever has a number for each head.
inline std::vector<HeadId> every_head(const ModelDims& dims) {
  std::vector<HeadId> out;
  for (int layer = 0; layer < dims.layers; ++layer)
    for (int head = 0; head < dims.heads_of(layer); ++head) out.push_back({layer, head});
  return out;
}

/// Where a head stands there. REQUIRES dims.has_head().
inline int head_index(const ModelDims& dims, HeadId head) {
  int before = 0;
  for (int layer = 0; layer < head.layer; ++layer) before += dims.heads_of(layer);
  return before + head.head;
}

/// The head itself, or one near it that the model has. REQUIRES a layer.
inline HeadId nearest_head(const ModelDims& dims, HeadId head) {
  const int layer = std::clamp(head.layer, 0, dims.layers - 1);
  return {layer, std::clamp(head.head, 0, dims.heads_of(layer) - 1)};
}

/// "12", or "10–32" where layers differ.
inline std::string heads_text(const ModelDims& dims) {
  const int other = dims.state_heads > 0 ? dims.state_heads : dims.heads;
  const auto [least, most] = std::minmax(dims.heads, other);
  return least == most ? std::to_string(least) : std::to_string(least) + "–" + std::to_string(most);
}

}  // namespace headscope
