#pragma once
// Which layers of a model may become linear (core/analysis/linear_layers.h), as pictures: one place for the command
// line and for the window's page. All functions are pure.

#include "core/analysis/linear_layers.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/matrix_scene.h"

namespace headscope {

/// Loss against the number of layers that keep softmax: the greedy search, evenly spaced layers, layers drawn at
/// random (mean, with a band from the least to the most); dashed: what is allowed. The marker is at the fewest.
LineChart kept_softmax_chart(const LinearLayers& found, double allowed, const Style& style);
/// Loss with one layer linear, and with its attention switched off, by layer.
LineChart one_linear_layer_chart(const LinearLayers& found, const Style& style);
/// Rounds of the search × layers: by how much the loss lay above the model's own with that layer's change tried; "•"
/// before the number of the change that stayed. Masked: that layer was changed in a round before; NaN: not tried yet.
Matrix linear_search_matrix(const LinearLayers& found);
/// All three, as wide as that.
Scene linear_layers_scene(const LinearLayers& found, double allowed, double width, const Style& style);

}  // namespace headscope
