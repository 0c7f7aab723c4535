#include "viz/scene/arrow.h"

#include <cmath>
#include <utility>

namespace headscope {

void add_arrow(Scene& scene, std::vector<Point> way, Color color, double width, std::string id, std::string tooltip) {
  if (way.size() < 2) return;
  const Point to = way.back(), from = way[way.size() - 2];
  scene.add({Line{std::move(way), color, width}, std::move(id), std::move(tooltip)});
  const double dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy);
  if (length < 1) return;
  const double ux = dx / length, uy = dy / length;
  scene.add(
      {Line{{{to.x - 5 * ux - 3 * uy, to.y - 5 * uy + 3 * ux}, to, {to.x - 5 * ux + 3 * uy, to.y - 5 * uy - 3 * ux}},
            color,
            width},
       "", ""});
}

}  // namespace headscope
