#pragma once
// The kinds of layers that a model has: of one kind all numbers of a layer are alike, so that what is told of a model
// is told once for each.

#include <string>
#include <utility>
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

/// The least and the largest of a number of widths_of(): of layers that attend or, of d_mlp, that have an MLP. What the
/// model says where there are none.
inline std::pair<int, int> least_and_most(const ModelDims& dims, int LayerWidths::*of) {
  const auto all = [&](int layer) { return of == &LayerWidths::d_mlp ? dims.has_mlp(layer) : dims.attends(layer); };
  const int usual = LayerWidths{dims.kv_heads, dims.d_head, dims.d_mlp}.*of;
  std::pair<int, int> out{usual, usual};
  bool first = true;
  for (int layer = 0; layer < dims.layers && !dims.widths.empty(); ++layer) {
    if (!all(layer)) continue;
    const int here = dims.widths_of(layer).*of;
    out = first ? std::pair{here, here} : std::pair{std::min(out.first, here), std::max(out.second, here)};
    first = false;
  }
  return out;
}

/// "256", or "256–512" where layers differ. `text` writes a number.
template <class Text>
std::string across_layers(const ModelDims& dims, int LayerWidths::*of, Text&& text) {
  const auto [least, most] = least_and_most(dims, of);
  return least == most ? std::string(text(least)) : std::string(text(least)) + "–" + std::string(text(most));
}
inline std::string across_layers(const ModelDims& dims, int LayerWidths::*of) {
  return across_layers(dims, of, [](int value) { return std::to_string(value); });
}

}  // namespace headscope
