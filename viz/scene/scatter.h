#pragma once
// Points over two axes, each a thing that can be pointed at: heads by two of their metrics. A thin cross through a
// point says how far its values are spread.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct ScatterPoint {
  HeadId head;        ///< what its mark means; its id is "head.<layer>.<head>"
  std::string label;  ///< written beside it where there is room
  std::string tooltip;
  double x = 0, y = 0;                ///< NaN: the point is left out, and counted below the picture
  double x_spread = 0, y_spread = 0;  ///< half lengths of the cross; NaN or 0 = none
  Color color;
  bool hollow = false;  ///< a ring instead of a dot: without class
  bool named = false;   ///< the label is written even where it is crowded
};

struct ScatterOptions {
  std::string x_title, y_title;
  std::optional<double> x_low, x_high, y_low, y_high;  ///< else what the points need, with a little room
  std::optional<Point> chance;                         ///< dashed lines where a head that knows nothing would be
  std::vector<std::pair<std::string, Color>> legend;
  std::string hollow_title;  ///< what rings are, at the legend's end; "" = not said
  double width = 640, height = 400;
};

/// Throws nothing; without a point that has both values the picture says so.
Scene scatter_scene(const std::vector<ScatterPoint>& points, const ScatterOptions& options, const Style& style);

}  // namespace headscope
