#include "app/widgets/scene_hit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "app/widgets/scene_view.h"

namespace headscope {

namespace {

Rect round_points(std::span<const Point> points) {
  if (points.empty()) return {};
  double left = points[0].x, right = left, top = points[0].y, bottom = top;
  for (const Point& p : points) {
    left = std::min(left, p.x), right = std::max(right, p.x);
    top = std::min(top, p.y), bottom = std::max(bottom, p.y);
  }
  return {left, top, right - left, bottom - top};
}

Point turned(Point p, double degrees) {
  const double angle = degrees * std::numbers::pi / 180;
  return {p.x * std::cos(angle) - p.y * std::sin(angle), p.x * std::sin(angle) + p.y * std::cos(angle)};
}

/// The text's box before it turns, relative to its anchor.
Rect upright(const Text& text, const TextMeasure& measure) {
  const TextBox box = measure.measure(text.text, text.font);
  const double share = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? 0.5 : 1;
  return {-share * box.width, -box.ascent, box.width, box.ascent + box.descent};
}

struct Hit {
  Point p;
  double reach;
  const TextMeasure& measure;
  /// A frame round something is not in the way of what it frames; an area without either is there to be pointed at.
  bool operator()(const Box& box) const { return (box.fill.a != 0 || box.stroke.a == 0) && box.rect.contains(p); }
  bool operator()(const Heatmap& map) const { return map.rect.contains(p); }
  bool operator()(const Pixels& pixels) const { return pixels.rect.contains(p); }
  bool operator()(const Line& line) const {
    for (std::size_t i = 1; i < line.points.size(); ++i)
      if (distance(p, line.points[i - 1], line.points[i]) <= reach + line.width / 2) return true;
    return false;
  }
  bool operator()(const Curve& curve) const {
    Rect near = bounds(curve);
    const double more = reach + curve.width / 2;
    near = {near.x - more, near.y - more, near.w + 2 * more, near.h + 2 * more};
    return near.contains(p) && distance(p, curve) <= more;
  }
  bool operator()(const Text& text) const {
    return upright(text, measure).contains(turned({p.x - text.at.x, p.y - text.at.y}, -text.degrees));
  }
};

}  // namespace

Rect bounds(const Line& line) {
  return round_points(line.points);
}

Rect bounds(const Curve& c) {
  return round_points(std::array{c.from, c.control_from, c.control_to, c.to});
}

Rect bounds(const Mark& mark, const TextMeasure& measure) {
  if (const auto* box = std::get_if<Box>(&mark.shape)) return box->rect;
  if (const auto* map = std::get_if<Heatmap>(&mark.shape)) return map->rect;
  if (const auto* pixels = std::get_if<Pixels>(&mark.shape)) return pixels->rect;
  if (const auto* line = std::get_if<Line>(&mark.shape)) return bounds(*line);
  if (const auto* curve = std::get_if<Curve>(&mark.shape)) return bounds(*curve);
  const Text& text = std::get<Text>(mark.shape);
  const Rect r = upright(text, measure);
  const Point corners[] = {turned({r.x, r.y}, text.degrees), turned({r.right(), r.y}, text.degrees),
                           turned({r.x, r.bottom()}, text.degrees), turned({r.right(), r.bottom()}, text.degrees)};
  const Rect around = round_points(corners);
  return {around.x + text.at.x, around.y + text.at.y, around.w, around.h};
}

double distance(Point p, Point from, Point to) {
  const double x = to.x - from.x, y = to.y - from.y, length = x * x + y * y;
  const double t = length > 0 ? std::clamp(((p.x - from.x) * x + (p.y - from.y) * y) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - from.x - t * x, p.y - from.y - t * y);
}

double distance(Point p, const Curve& c) {
  constexpr int pieces = 24;
  double nearest = std::numeric_limits<double>::infinity();
  Point before = c.from;
  for (int i = 1; i <= pieces; ++i) {
    const double t = static_cast<double>(i) / pieces, u = 1 - t;
    const double a = u * u * u, b = 3 * u * u * t, d = 3 * u * t * t, e = t * t * t;
    const Point next{a * c.from.x + b * c.control_from.x + d * c.control_to.x + e * c.to.x,
                     a * c.from.y + b * c.control_from.y + d * c.control_to.y + e * c.to.y};
    nearest = std::min(nearest, distance(p, before, next));
    before = next;
  }
  return nearest;
}

const Mark* mark_at(const Scene& scene, Point p, double reach, const TextMeasure& measure) {
  const Hit hit{p, reach, measure};
  const Mark* written = nullptr;
  for (auto mark = scene.marks.rbegin(); mark != scene.marks.rend(); ++mark) {
    if (mark->id.empty() || !std::visit(hit, mark->shape)) continue;
    // A number written on a cell says what the cell is: it is the cell that is pointed at.
    const bool plain_text = std::holds_alternative<Text>(mark->shape) && mark->tooltip.empty();
    if (!plain_text && (!written || std::holds_alternative<Heatmap>(mark->shape))) return &*mark;
    if (!written) written = &*mark;
  }
  return written;
}

}  // namespace headscope
