#pragma once
// A line with a head at its last point, of several pieces where it turns.

#include <string>
#include <vector>

#include "viz/scene/scene.h"

namespace headscope {

/// The line is the mark `id`; the head is decoration.
void add_arrow(Scene& scene, std::vector<Point> way, Color color, double width = 1.25, std::string id = "",
               std::string tooltip = "");

}  // namespace headscope
