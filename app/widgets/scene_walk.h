#pragma once
// Where the arrow keys lead in a picture: from mark to mark, inside a heatmap from cell to cell, inside a chart from
// value to value.
// Thread rule: pure functions.

#include <optional>
#include <string>

#include "viz/scene/scene.h"
#include "viz/scene/text_measure.h"

namespace headscope {

/// A mark that the keyboard is at, and its cell where the mark has several.
struct SceneStop {
  const Mark* mark = nullptr;
  std::optional<Cell> cell;  ///< of a chart: the column is the place in PlotArea::stops
  Rect rect;                 ///< of the mark or the cell
};

enum class Way { left, right, up, down };

/// What says something when it is pointed at can be reached; axes, labels, colour bars cannot. The first in reading
/// order; nullopt = none.
std::optional<SceneStop> first_stop(const Scene& scene, const TextMeasure& measure);
/// The nearest that lies that way; nullopt = none does.
std::optional<SceneStop> next_stop(const Scene& scene, const SceneStop& from, Way way, const TextMeasure& measure);
/// The same mark and cell in a newer picture, or what lies nearest to where they were.
std::optional<SceneStop> same_stop(const Scene& scene, const std::string& id, const std::optional<Cell>& cell,
                                   const Rect& rect, const TextMeasure& measure);

}  // namespace headscope
