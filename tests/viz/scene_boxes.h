#pragma once
// Where the ink of a scene's text lies, so that tests can say: nothing is cut off, nothing stands on anything.

#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/text_measure.h"

namespace headscope::testing {

struct InkBox {
  std::array<Point, 4> corners;
  std::string what, id;
};

inline InkBox ink_box(const Text& text, const std::string& id, const TextMeasure& measure) {
  const TextBox box = measure.measure(text.text, text.font);
  const double start = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? -box.width / 2 : -box.width;
  const double angle = text.degrees * std::numbers::pi / 180, c = std::cos(angle), s = std::sin(angle);
  const auto place = [&](double x, double y) { return Point{text.at.x + c * x - s * y, text.at.y + s * x + c * y}; };
  const double x0 = start + box.ink.x, x1 = x0 + box.ink.w, y0 = box.ink.y, y1 = y0 + box.ink.h;
  return {{place(x0, y0), place(x1, y0), place(x1, y1), place(x0, y1)}, text.text, id};
}

inline InkBox box_of(const Rect& r, const std::string& what) {
  return {{Point{r.x, r.y}, Point{r.right(), r.y}, Point{r.right(), r.bottom()}, Point{r.x, r.bottom()}}, what, what};
}

/// Separating axes of two rectangles that may be turned. Boxes closer than `slack` into one another do not count.
inline bool overlap(const InkBox& a, const InkBox& b, double slack = 0.6) {
  for (const InkBox* box : {&a, &b})
    for (int side = 0; side < 2; ++side) {
      const Point p = box->corners[0], q = box->corners[side == 0 ? 1 : 3];
      const double length = std::hypot(q.x - p.x, q.y - p.y);
      if (length == 0) return false;
      const double ux = (q.x - p.x) / length, uy = (q.y - p.y) / length;
      const auto reach = [&](const InkBox& of) {
        double low = 1e300, high = -1e300;
        for (const Point& c : of.corners)
          low = std::min(low, c.x * ux + c.y * uy), high = std::max(high, c.x * ux + c.y * uy);
        return std::pair(low, high);
      };
      const auto [a0, a1] = reach(a);
      const auto [b0, b1] = reach(b);
      if (a1 <= b0 + slack || b1 <= a0 + slack) return false;
    }
  return true;
}

inline std::vector<InkBox> text_boxes(const Scene& scene, const TextMeasure& measure) {
  std::vector<InkBox> out;
  for (const Mark& mark : scene.marks)
    if (const auto* text = std::get_if<Text>(&mark.shape)) out.push_back(ink_box(*text, mark.id, measure));
  return out;
}

/// What is wrong with the layout, in words; "" = nothing. A picture without marks or size is wrong, and so is whatever
/// stands at a place that is no number.
inline std::string layout_fault(const Scene& scene, const TextMeasure& measure) {
  if (scene.marks.empty()) return "nothing is drawn";
  if (!(scene.width > 0 && scene.height > 0) || !std::isfinite(scene.width) || !std::isfinite(scene.height))
    return "the picture is " + std::to_string(scene.width) + " by " + std::to_string(scene.height);
  const std::vector<InkBox> boxes = text_boxes(scene, measure);
  for (const InkBox& box : boxes)
    for (const Point& p : box.corners)
      if (!(p.x >= 0 && p.y >= 0 && p.x <= scene.width && p.y <= scene.height))
        return "'" + box.what + "' (" + box.id + ") leaves the picture at " + std::to_string(p.x) + ", " +
               std::to_string(p.y);
  for (std::size_t i = 0; i < boxes.size(); ++i)
    for (std::size_t j = i + 1; j < boxes.size(); ++j)
      if (overlap(boxes[i], boxes[j]))
        return "'" + boxes[i].what + "' (" + boxes[i].id + ") stands on '" + boxes[j].what + "' (" + boxes[j].id + ")";
  for (const Mark& mark : scene.marks) {
    const auto* map = std::get_if<Heatmap>(&mark.shape);
    if (!map) continue;
    const Rect& r = map->rect;
    if (!(r.x >= 0 && r.y >= 0 && r.right() <= scene.width && r.bottom() <= scene.height))
      return mark.id + " leaves the picture";
    for (const InkBox& box : boxes)
      if (!box.id.starts_with("value.") && overlap(box, box_of(r, mark.id)))
        return "'" + box.what + "' stands on " + mark.id;
  }
  return "";
}

}  // namespace headscope::testing
