#pragma once
// What maps that stand together are of: those of layers that attend are probabilities, those of a state any numbers.

#include <algorithm>
#include <span>

#include "core/trace/attention_map.h"

namespace headscope {

/// Of all of them: the first that is not probability, else that.
inline MapKind common_kind(std::span<const AttentionMap> maps) {
  const auto found =
      std::ranges::find_if(maps, [](const AttentionMap& map) { return map.place().kind != MapKind::probability; });
  return found == maps.end() ? MapKind::probability : found->place().kind;
}

/// The first whose weights are shares of a row, or the first of all. REQUIRES one.
inline const AttentionMap& first_of_shares(std::span<const AttentionMap> maps) {
  const auto found =
      std::ranges::find(maps, MapKind::probability, [](const AttentionMap& map) { return map.place().kind; });
  return found == maps.end() ? maps.front() : *found;
}

}  // namespace headscope
