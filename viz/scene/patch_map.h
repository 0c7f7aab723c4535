#pragma once
// Where one query looks in a picture: its row of the map laid over the patches that the keys are (PatchPicture).
// Colour and opacity grow with the weight, so that the picture shows where little attention is.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"

namespace headscope {

struct PatchMapOptions {
  HeadId head = {};
  Index query = 0;      ///< position of the query
  bool smooth = false;  ///< bilinear between the middles of patches; else every patch is one flat rectangle
  Badge badge = {};
  double plot = 512;  ///< longer side that the picture aims at, logical pixels
  /// For a panel: all of it is no larger than this, without title and caption. Then `plot` is not read.
  struct Room {
    double width = 0, height = 0;
  };
  std::optional<Room> room = {};
};

/// Any number by key, laid over the picture in the same way.
struct PatchValues {
  std::vector<double> by_key;  ///< leading keys too
  std::string title;           ///< of a picture for a file
  std::string name;            ///< "attention rollout[0, :]"
  std::string unit;            ///< at the colour bar
  std::optional<Index> query;  ///< whose numbers they are, framed where it is a patch
  std::string caption = {};    ///< below; empty = how much lies on the picture, and on what else
  /// What one of them says, for its tooltip; empty = its label and number.
  std::function<std::string(Index key, double value)> says = {};
};
Scene patch_values_scene(const Trace& trace, const PatchValues& values, const PatchMapOptions& options,
                         const Style& style);

/// Marks "picture" (the pixels), "patch.<row>.<column>" (TokenAt of its key), with `smooth` "overlay", and "query"
/// round the patch that looks, where queries are patches too. The range is 0 … the largest weight on a patch, or
/// symmetric about 0 where weights are negative. Series: the weights of the patches. Throws Error when the trace has no
/// picture, no such map or no such row.
Scene patch_map_scene(const Trace& trace, const PatchMapOptions& options, const Style& style);

/// The picture alone, without numbers, its longer side `side` logical pixels long, with a frame round the patch of
/// `key`, if it has one.
Scene picture_thumbnail(const PatchPicture& picture, std::optional<Index> key, double side, const Style& style);

/// Where a patch lies in a picture that is drawn in `drawn`.
Rect patch_rect(const PatchPicture& picture, const Rect& drawn, Index row, Index column);

}  // namespace headscope
