#include "viz/scene/kind_norms.h"

#include <algorithm>
#include <vector>

namespace headscope {

std::map<bool, LayerNorm> layer_norms(const Trace& trace, std::span<const AttentionMap* const> maps,
                                      std::span<const MapCells> cells, const Scaling& scaling) {
  std::map<bool, std::vector<MapCells>> apart;
  std::map<bool, LayerNorm> out;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const bool attending = attends(trace, *maps[i]);
    if (!out.contains(attending)) out[attending].kind = maps[i]->place().kind;
    apart[attending].push_back(cells[i]);
  }
  for (auto& [attends, made] : out) {
    Scaling own = scaling;
    if (!attends && out.size() > 1) own.scale = Scale::linear;
    made.norm = norm_for(apart.at(attends), made.kind, own);
    for (const MapCells& each : apart.at(attends)) {
      made.highest = std::max(made.highest, each.highest());
      made.masked |= each.any_masked();
      made.missing |= each.any_missing();
    }
  }
  return out;
}

}  // namespace headscope
