#pragma once
// Colormaps as data: 256 colours spread evenly over [0, 1]. Each is a few control colours joined smoothly in Oklab, so
// a new map is one line of the table in colormap.cpp. Sequential maps move in one direction of lightness (a grey print
// keeps the order); diverging maps pass through a neutral in the middle and move away from it on both sides.

#include <array>
#include <span>
#include <string_view>

#include "viz/color/color.h"

namespace headscope {

struct Colormap {
  static constexpr int size = 256;
  std::string_view id, title;
  bool diverging = false;
  std::array<Color, size> table{};

  /// `t` in [0, 1]; values outside are clamped, NaN counts as 0 (a Heatmap gives NaN a colour of its own before
  /// asking).
  Color at(double t) const;
};

/// Every map: "inferno" (dark ground), "paper" (light ground, print), "viridis", "grey", "diverging-dark",
/// "diverging-light". The tables live as long as the program. Thread-safe.
std::span<const Colormap> colormaps();
/// Throws Error listing the known ids.
const Colormap& colormap(std::string_view id);

}  // namespace headscope
