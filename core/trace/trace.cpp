#include "core/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"

namespace headscope {

std::vector<std::int32_t> Trace::ids() const {
  std::vector<std::int32_t> result;
  result.reserve(tokens.size());
  for (const Token& token : tokens) result.push_back(token.id);
  return result;
}

const AttentionMap& Trace::map(int layer, int head) const {
  const auto place = std::lower_bound(maps.begin(), maps.end(), std::pair(layer, head),
                                      [](const AttentionMap& map, const std::pair<int, int>& wanted) {
                                        return std::pair(map.layer(), map.head()) < wanted;
                                      });
  if (place != maps.end() && place->layer() == layer && place->head() == head) return *place;
  const std::string recorded = maps.empty()
                                   ? "no maps"
                                   : fmt::format("{} maps, from {}.{} to {}.{}", maps.size(), maps.front().layer(),
                                                 maps.front().head(), maps.back().layer(), maps.back().head());
  throw Error(fmt::format("head {}.{}", layer, head),
              fmt::format("a recorded head of {} layers with {} heads", model.dims.layers, model.dims.heads), recorded);
}

}  // namespace headscope
