#pragma once
// Where one token looks, in every head at once: a strip for each head over the tokens, layer under layer or as a list.

#include <optional>
#include <utility>
#include <vector>

#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"

namespace headscope {

struct HeadRowsOptions {
  int heads = 1;                     ///< of a layer
  Scale scale = Scale::linear;       ///< linear, or log where nothing is negative
  std::optional<HeadId> selected;    ///< in the accent colour
  double width = 900, height = 360;  ///< that the picture may take, logical pixels
  /// (layer, head) of every row: the rows are one list, in this order, or layer under layer where they are all heads of
  /// the model in that order. Of a list whose heads with states stand behind all others, those have a scale of their
  /// own. Empty: layers of `heads` rows, from layer 0.
  std::vector<HeadId> listed = {};
  std::optional<Index> query = {};  ///< position whose rows these are; by default the last of the keys
  std::optional<Index> key = {};    ///< a key pointed out on the axis
  MapKind kind = MapKind::probability;
  double least_row = 2, largest_row = 18;  ///< height of a row; rows that do not fit make the picture higher
  bool values = false;                     ///< numbers in cells with room for them
  bool titled = false;                     ///< with title and caption, for a file
};

/// `rows` (layer · heads + head, or place in the list; position) of weights, NaN where a mask hides them; `tokens`
/// names the positions (its maps are not read). Marks "rows.<layer>", or of a list "rows" and "rows.states", hold one
/// heatmap row for each head and mean HeadRows. Throws Error when the rows are not of whole layers, or the scale is per
/// row or does not suit the weights.
Scene head_rows_scene(const Trace& tokens, const Tensor& rows, const HeadRowsOptions& options, const Style& style);

}  // namespace headscope
