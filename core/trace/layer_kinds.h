#pragma once
// The kinds of layers that a model has: of one kind all numbers of a layer are alike, so that what is told of a model
// is told once for each.

#include <vector>

#include "core/trace/model_info.h"

namespace headscope {

struct LayerKind {
  Mixer mixer = Mixer::attention;
  int layers = 0;  ///< of this kind
  ModelDims dims;  ///< of a model of such layers alone, as many as `layers`
};

/// In the order in which they come first; one where all mix tokens alike.
inline std::vector<LayerKind> layer_kinds(const ModelDims& dims) {
  std::vector<LayerKind> kinds;
  for (int layer = 0; layer < dims.layers; ++layer) {
    const Mixer mixer = dims.mixer(layer);
    const auto alike = [&](const LayerKind& kind) {
      return kind.mixer == mixer && (dims.widths.empty() || kind.dims.widths_of(0) == dims.widths_of(layer));
    };
    auto found = std::ranges::find_if(kinds, alike);
    if (found == kinds.end()) found = kinds.insert(found, {mixer, 0, dims.of_layer(layer)});
    found->dims.layers = ++found->layers;
  }
  return kinds;
}

/// Those that attend: of a model without any, 0 layers.
inline int attending_layers(const ModelDims& dims) {
  int count = 0;
  for (int layer = 0; layer < dims.layers; ++layer) count += dims.attends(layer);
  return count;
}

}  // namespace headscope
