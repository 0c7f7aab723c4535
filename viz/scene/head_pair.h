#pragma once
// One head in two runs: its map in each, and their difference where the tokens correspond, on one pair of scales.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/head_map.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"

namespace headscope {

struct HeadPairOptions {
  HeadId head = {};
  std::string name_a = "A", name_b = "B";
  std::span<const int> partner;  ///< position of `a` → of `b`, or −1 (core/trace/token_alignment.h)
  Scaling scaling;               ///< of the two maps
  double plot = 280;             ///< side that each map aims at, logical pixels
  std::vector<std::pair<std::string, std::string>> facts;
  bool bare = false;  ///< without title and caption, for a panel that says these itself
  /// As in HeadMapOptions: the picture is no larger, cells take what labels leave. Then `plot` is not read.
  std::optional<HeadMapOptions::Room> room = {};
  /// The parts that are shown; the difference is that of region_a. Colours are those of the whole.
  std::optional<MapRegion> region_a = {}, region_b = {};
};

/// Marks "map.a", "map.b" and "map.difference"; the last is b − a on the cells of `a`, neutral where a query or a key
/// has no partner. Throws Error when a trace has no such map, a region is not inside it, or the scale does not suit the
/// weights.
Scene head_pair_scene(const Trace& a, const Trace& b, const HeadPairOptions& options, const Style& style);

}  // namespace headscope
