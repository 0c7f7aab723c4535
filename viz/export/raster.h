#pragma once
// A scene as pixels. Cells of a heatmap are snapped to whole pixels, so every cell is one flat colour, at any scale;
// where cells are smaller than a pixel the strongest of them is shown, so one bright cell never disappears.

#include <cstdint>
#include <optional>
#include <vector>

#include "viz/scene/scene.h"

namespace headscope {

/// 8-bit sRGB with straight alpha, row-major, 4 bytes a pixel.
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;
  Color at(int x, int y) const {
    const std::uint8_t* p =
        rgba.data() + 4 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x));
    return {p[0], p[1], p[2], p[3]};
  }
};

/// How large a picture becomes. At most one of width_px and width_inches; the height follows from the scene.
struct OutputSize {
  std::optional<int> width_px;
  std::optional<double> width_inches;  ///< with `dpi`
  std::optional<double> dpi;           ///< pixels per inch; alone: one logical pixel is 1/96 inch
};

/// Pixels per logical pixel, and what the file says about its own resolution.
struct PixelSize {
  double scale = 1;
  double dpi = 96;
  int width = 0, height = 0;
};

inline constexpr int max_side_px = 30000;
inline constexpr std::int64_t max_pixels = 150'000'000;

/// Throws Error when the size is not positive, or either limit above is passed (the message says which size would fit).
PixelSize pixel_size(const Scene& scene, const OutputSize& size);

/// Same limits as pixel_size(). Any thread; each call has its own fonts.
Image rasterize(const Scene& scene, double scale);

}  // namespace headscope
