#include "viz/export/cairo_shapes.h"

#include <algorithm>
#include <cstdint>
#include <numbers>
#include <vector>

namespace headscope {

void CairoShapes::operator()(const Box& box) const {
  trace_path(box);
  if (box.fill.a) {
    source(box.fill);
    cairo_fill_preserve(cairo_);
  }
  if (box.stroke.a && box.stroke_width > 0) {
    source(box.stroke);
    cairo_set_line_width(cairo_, box.stroke_width);
    cairo_stroke_preserve(cairo_);
  }
  cairo_new_path(cairo_);
}

void CairoShapes::operator()(const Line& line) const {
  if (line.points.size() < 2) return;
  cairo_move_to(cairo_, line.points[0].x, line.points[0].y);
  for (std::size_t i = 1; i < line.points.size(); ++i) cairo_line_to(cairo_, line.points[i].x, line.points[i].y);
  stroke(line.color, line.width);
}

void CairoShapes::operator()(const Curve& c) const {
  cairo_move_to(cairo_, c.from.x, c.from.y);
  cairo_curve_to(cairo_, c.control_from.x, c.control_from.y, c.control_to.x, c.control_to.y, c.to.x, c.to.y);
  stroke(c.color, c.width);
}

void CairoShapes::operator()(const Pixels& pixels) const {
  if (pixels.width <= 0 || pixels.height <= 0) return;
  std::vector<std::uint32_t> premultiplied(static_cast<std::size_t>(pixels.width) *
                                           static_cast<std::size_t>(pixels.height));
  for (std::size_t i = 0; i < premultiplied.size(); ++i) {
    const std::uint8_t* p = pixels.rgba->data() + 4 * i;
    const std::uint32_t a = p[3];
    const auto times = [a](std::uint32_t c) { return (c * a + 127) / 255; };
    premultiplied[i] = a << 24 | times(p[0]) << 16 | times(p[1]) << 8 | times(p[2]);
  }
  const CairoSurface image(cairo_image_surface_create_for_data(reinterpret_cast<unsigned char*>(premultiplied.data()),
                                                               CAIRO_FORMAT_ARGB32, pixels.width, pixels.height,
                                                               pixels.width * 4));
  cairo_save(cairo_);
  cairo_rectangle(cairo_, pixels.rect.x, pixels.rect.y, pixels.rect.w, pixels.rect.h);
  cairo_clip(cairo_);
  cairo_translate(cairo_, pixels.rect.x, pixels.rect.y);
  cairo_scale(cairo_, pixels.rect.w / pixels.width, pixels.rect.h / pixels.height);
  cairo_set_source_surface(cairo_, image.get(), 0, 0);
  cairo_pattern_set_filter(cairo_get_source(cairo_), pixels.smooth ? CAIRO_FILTER_BILINEAR : CAIRO_FILTER_NEAREST);
  cairo_pattern_set_extend(cairo_get_source(cairo_), CAIRO_EXTEND_PAD);
  cairo_paint(cairo_);
  cairo_restore(cairo_);
}

void CairoShapes::source(Color c) const {
  cairo_set_source_rgba(cairo_, c.r / 255.0, c.g / 255.0, c.b / 255.0, c.a / 255.0);
}

void CairoShapes::stroke(Color color, double width) const {
  source(color);
  cairo_set_line_width(cairo_, width);
  cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);  // a peak ends at its value
  cairo_stroke(cairo_);
}

void CairoShapes::trace_path(const Box& box) const {
  const auto& [x, y, w, h] = box.rect;
  const double r = std::min({box.radius, w / 2, h / 2}), quarter = std::numbers::pi / 2;
  if (r <= 0) {
    cairo_rectangle(cairo_, x, y, w, h);
    return;
  }
  cairo_new_sub_path(cairo_);
  cairo_arc(cairo_, x + w - r, y + r, r, -quarter, 0);
  cairo_arc(cairo_, x + w - r, y + h - r, r, 0, quarter);
  cairo_arc(cairo_, x + r, y + h - r, r, quarter, 2 * quarter);
  cairo_arc(cairo_, x + r, y + r, r, 2 * quarter, 3 * quarter);
  cairo_close_path(cairo_);
}

}  // namespace headscope
