#pragma once
// Where one token looks, in every head at once: a strip for each head over the tokens before it, layer under layer.

#include <optional>
#include <utility>

#include "core/trace/trace.h"
#include "viz/scene/furniture.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"

namespace headscope {

struct HeadRowsOptions {
  int heads = 1;                                ///< of a layer
  Scale scale = Scale::linear;                  ///< linear, or log
  std::optional<std::pair<int, int>> selected;  ///< (layer, head), in the accent colour
  double width = 900, height = 360;             ///< that the picture may take, logical pixels
};

/// `rows` (layer · heads + head, position) of weights; `tokens` names the positions (its maps are not read). Marks
/// "rows.<layer>" hold one heatmap row for each head. Throws Error when the rows are not of whole layers, or the scale
/// is per row.
Scene head_rows_scene(const Trace& tokens, const Tensor& rows, const HeadRowsOptions& options, const Look& look);

}  // namespace headscope
