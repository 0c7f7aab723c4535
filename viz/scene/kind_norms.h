#pragma once
// Scales of pictures that stand together where some are of layers that attend and others of a state: what one calls
// large is nothing in the other, so each has its own.

#include <map>
#include <span>

#include "core/trace/trace.h"
#include "viz/scene/map_cells.h"

namespace headscope {

struct LayerNorm {
  MapKind kind = MapKind::probability;
  ColorNorm norm;
  float highest = 0;
  bool masked = false, missing = false;
};

/// Whether the map's layer attends.
inline bool attends(const Trace& trace, const AttentionMap& map) {
  return trace.model.dims.attends() || trace.model.dims.attends(map.layer());
}

/// By whether the layers attend; `maps` and `cells` belong together. Beside attention what is signed has a linear
/// scale, whatever is asked for. Throws as norm_for().
std::map<bool, LayerNorm> layer_norms(const Trace& trace, std::span<const AttentionMap* const> maps,
                                      std::span<const MapCells> cells, const Scaling& scaling);

}  // namespace headscope
