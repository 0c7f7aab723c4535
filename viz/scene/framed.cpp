#include "viz/scene/framed.h"

#include <algorithm>
#include <cmath>

#include "core/base/overloaded.h"

namespace headscope {

namespace {
void move(Point& p, double x, double y) {
  p.x += x;
  p.y += y;
}

Mark moved(Mark mark, double x, double y) {
  const auto rect = [&](Rect& r) { r.x += x, r.y += y; };
  std::visit(Overloaded{[&](Box& box) { rect(box.rect); }, [&](Heatmap& map) { rect(map.rect); },
                        [&](Text& text) { move(text.at, x, y); },
                        [&](Line& line) {
                          for (Point& p : line.points) move(p, x, y);
                        },
                        [&](Curve& curve) {
                          for (Point* p : {&curve.from, &curve.control_from, &curve.control_to, &curve.to})
                            move(*p, x, y);
                        }},
             mark.shape);
  return mark;
}
}  // namespace

Scene framed(const Scene& bare, const Header& header, const Look& look) {
  Scene scene;
  scene.background = bare.background;
  scene.title = bare.title;
  scene.description = bare.description;
  const double width = std::max(bare.width, narrowest * look.theme.text_scale);
  scene.width = std::ceil(width + 2 * margin);
  const double y = std::round(add_header(scene, header, margin, margin, width, look) + 16);
  for (const Mark& mark : bare.marks) scene.add(moved(mark, margin, y));
  scene.height = std::ceil(add_caption(scene, bare.description, margin, y + bare.height + 8, width, look) + margin);
  return scene;
}

}  // namespace headscope
