#include "viz/export/raster.h"

#include <cairo.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "viz/export/cairo_handles.h"
#include "viz/export/cairo_shapes.h"

namespace headscope {

namespace {

std::uint32_t pixel(Color c) {  // cairo's ARGB32 of an opaque colour
  return 0xFF000000u | static_cast<std::uint32_t>(c.r) << 16 | static_cast<std::uint32_t>(c.g) << 8 | c.b;
}

/// Paints scenes into a buffer that cairo and the heatmaps share.
class Painter {
 public:
  Painter(int width, int height, double scale) : width_(width), height_(height), scale_(scale) {
    pixels_.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    surface_.reset(cairo_image_surface_create_for_data(reinterpret_cast<unsigned char*>(pixels_.data()),
                                                       CAIRO_FORMAT_ARGB32, width, height, width * 4));
    cairo_.reset(cairo_create(surface_.get()));
    if (cairo_status(cairo_.get()) != CAIRO_STATUS_SUCCESS)
      throw Error("picture", fmt::format("a drawing surface of {} × {} px", width, height),
                  cairo_status_to_string(cairo_status(cairo_.get())));
    cairo_scale(cairo_.get(), scale, scale);
    shapes_.emplace(cairo_.get());
  }

  void ground(Color color) {
    cairo_save(cairo_.get());
    cairo_set_operator(cairo_.get(), CAIRO_OPERATOR_SOURCE);
    shapes_->source(color);
    cairo_paint(cairo_.get());
    cairo_restore(cairo_.get());
  }

  template <class Shape>
  void operator()(const Shape& shape) {
    (*shapes_)(shape);
  }

  void operator()(const Heatmap& map) {
    if (map.rows() == 0 || map.columns() == 0) return;
    cairo_surface_flush(surface_.get());
    const std::vector<int> x = edges(map.rect.x, map.rect.w, map.columns()),
                           y = edges(map.rect.y, map.rect.h, map.rows());
    const bool fine = x.back() - x.front() < map.columns() || y.back() - y.front() < map.rows();
    fine ? paint_pooled(map, x.front(), x.back(), y.front(), y.back()) : paint_cells(map, x, y);
    cairo_surface_mark_dirty(surface_.get());
  }

  Image finish() {
    cairo_surface_flush(surface_.get());
    Image image{width_, height_, {}};
    image.rgba.resize(pixels_.size() * 4);
    for (std::size_t i = 0; i < pixels_.size(); ++i) {
      const std::uint32_t p = pixels_[i], a = p >> 24;
      const auto straight = [a](std::uint32_t c) {
        return static_cast<std::uint8_t>(a == 0 || a == 255 ? c : std::min(255u, (c * 255 + a / 2) / a));
      };
      std::uint8_t* out = image.rgba.data() + i * 4;
      out[0] = straight(p >> 16 & 255);
      out[1] = straight(p >> 8 & 255);
      out[2] = straight(p & 255);
      out[3] = static_cast<std::uint8_t>(a);
    }
    return image;
  }

 private:
  /// Pixel borders of `count` equal cells.
  std::vector<int> edges(double begin, double length, Index count) const {
    std::vector<int> out(static_cast<std::size_t>(count) + 1);
    for (Index i = 0; i <= count; ++i)
      nth(out, i) = static_cast<int>(
          std::lround((begin + length * static_cast<double>(i) / static_cast<double>(count)) * scale_));
    return out;
  }

  void fill(int x0, int x1, int y0, int y1, Color color) {
    x0 = std::max(x0, 0), y0 = std::max(y0, 0), x1 = std::min(x1, width_), y1 = std::min(y1, height_);
    if (x1 <= x0) return;
    for (int y = y0; y < y1; ++y) std::fill_n(row(y) + x0, x1 - x0, pixel(color));
  }

  void paint_cells(const Heatmap& map, const std::vector<int>& x, const std::vector<int>& y) {
    // A gap thinner than three quarters of a pixel would come and go with rounding: better none.
    const double wanted = map.gap * scale_;
    const int gap = wanted < 0.75 ? 0 : static_cast<int>(std::lround(wanted));
    const auto masked = [&](Index r, Index c) { return r < map.rows() && c < map.columns() && map.is_masked(r, c); };
    for (Index r = 0; r < map.rows(); ++r) {
      const int y0 = nth(y, r), y1 = y[static_cast<std::size_t>(r) + 1], inner_y = std::max(y1 - gap, y0);
      for (Index c = 0; c < map.columns(); ++c) {
        const int x0 = nth(x, c), x1 = x[static_cast<std::size_t>(c) + 1], inner_x = std::max(x1 - gap, x0);
        const Color color = map.color(r, c);
        fill(x0, inner_x, y0, inner_y, color);
        if (gap == 0 || !map.is_masked(r, c)) continue;
        const bool right = masked(r, c + 1),
                   below = masked(r + 1, c);  // masked neighbours grow together into one flat field
        if (right) fill(inner_x, x1, y0, inner_y, color);
        if (below) fill(x0, inner_x, inner_y, y1, color);
        if (right && below && masked(r + 1, c + 1)) fill(inner_x, x1, inner_y, y1, color);
      }
    }
  }

  void paint_pooled(const Heatmap& map, int x0, int x1, int y0, int y1) {
    const double rows = static_cast<double>(map.rows()), columns = static_cast<double>(map.columns());
    const double neutral = map.colormap->diverging ? 0.5 : 0;
    x1 = std::max(x1, x0 + 1), y1 = std::max(y1, y0 + 1);
    for (int y = std::max(y0, 0); y < std::min(y1, height_); ++y) {
      const auto r0 = static_cast<Index>((y - y0) * rows / (y1 - y0));
      const Index r1 = std::max(r0 + 1, static_cast<Index>((y + 1 - y0) * rows / (y1 - y0)));
      for (int x = std::max(x0, 0); x < std::min(x1, width_); ++x) {
        const auto c0 = static_cast<Index>((x - x0) * columns / (x1 - x0));
        const Index c1 = std::max(c0 + 1, static_cast<Index>((x + 1 - x0) * columns / (x1 - x0)));
        Color color = map.masked_color;
        double strongest = -1;
        for (Index r = r0; r < std::min(r1, map.rows()); ++r)
          for (Index c = c0; c < std::min(c1, map.columns()); ++c) {
            if (map.is_masked(r, c)) continue;
            const double t = map.unit(r, c), strength = std::isnan(t) ? 2 : std::abs(t - neutral);
            if (strength > strongest) strongest = strength, color = map.color(r, c);
          }
        row(y)[x] = pixel(color);
      }
    }
  }

  std::uint32_t* row(int y) { return pixels_.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width_); }

  int width_, height_;
  double scale_;
  std::vector<std::uint32_t> pixels_;
  CairoSurface surface_;
  CairoContext cairo_;
  std::optional<CairoShapes> shapes_;
};

}  // namespace

PixelSize pixel_size(const Scene& scene, const OutputSize& size) {
  if (size.width_px && size.width_inches) throw Error("picture size", "a width in pixels or in inches", "both");
  if (size.width_px && *size.width_px <= 0)
    throw Error("picture width", "a positive number of pixels", std::to_string(*size.width_px));
  for (const auto& [what, value] :
       {std::pair("picture width in inches", size.width_inches), std::pair("dpi", size.dpi)})
    if (value && !(*value > 0 && std::isfinite(*value)))
      throw Error(what, "a positive number", fmt::format("{}", *value));
  if (!(scene.width > 0 && scene.height > 0))
    throw Error("picture size", "a scene with width and height", fmt::format("{} × {}", scene.width, scene.height));
  PixelSize out;
  const double dpi = size.dpi.value_or(96);
  out.scale = dpi / 96;
  if (size.width_px) out.scale = *size.width_px / scene.width;
  if (size.width_inches) out.scale = *size.width_inches * dpi / scene.width;
  // A width alone says nothing about paper: the resolution is then what makes the picture as large as its scene.
  out.dpi = size.dpi ? dpi : 96 * out.scale;
  const double width = std::round(scene.width * out.scale), height = std::round(scene.height * out.scale);
  if (width > max_side_px || height > max_side_px || width * height > static_cast<double>(max_pixels)) {
    const double side = std::min(max_side_px / width, max_side_px / height);
    const double shrink = std::min(side, std::sqrt(static_cast<double>(max_pixels) / (width * height)));
    throw Error(
        "picture size",
        fmt::format("at most {} px on a side and {} million pixels in all", max_side_px, max_pixels / 1'000'000),
        fmt::format("{:.0f} × {:.0f} px", width, height),
        fmt::format("{:.0f} px wide would fit", std::floor(width * shrink)));
  }
  out.width = std::max(1, static_cast<int>(width));
  out.height = std::max(1, static_cast<int>(height));
  return out;
}

Image rasterize(const Scene& scene, double scale) {
  const PixelSize size = pixel_size(scene, {.width_px = {}, .width_inches = {}, .dpi = scale * 96});
  Painter painter(size.width, size.height, scale);
  painter.ground(scene.background);
  for (const Mark& mark : scene.marks) std::visit(painter, mark.shape);
  return painter.finish();
}

}  // namespace headscope
