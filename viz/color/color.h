#pragma once
// A colour as files and screens want it: 8-bit sRGB with straight alpha. Mixing happens in Oklab (Ottosson, A
// perceptual color space for image processing, 2020), where equal steps look equal; lightness is CIE 1976 L*.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headscope {

struct Color {
  std::uint8_t r = 0, g = 0, b = 0, a = 255;
  bool operator==(const Color&) const = default;
};

/// 0xRRGGBB
constexpr Color rgb(std::uint32_t hex) {
  return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>(hex >> 8), static_cast<std::uint8_t>(hex)};
}
/// The same colour at `opacity` in [0, 1].
Color with_opacity(Color color, double opacity);
/// "#RRGGBB" (case does not matter); nullopt for anything else.
std::optional<Color> parse_color(std::string_view text);
/// "#rrggbb"; alpha is not written.
std::string hex(Color color);
/// What is seen when `top` lies over an opaque `bottom` (in sRGB, as printers and screens blend).
Color over(Color top, Color bottom);

struct Oklab {
  double L = 0, a = 0, b = 0;
};
Oklab to_oklab(Color color);
/// Clipped to the sRGB gamut.
Color from_oklab(const Oklab& color);
/// Oklab mixture: t = 0 gives `from`, t = 1 gives `to`. Alpha is mixed linearly.
Color mix(Color from, Color to, double t);

/// CIE L*, 0 (black) … 100 (white). Alpha is ignored.
double lightness(Color color);
/// Contrast ratio of WCAG 2, 1 … 21. Alpha is ignored.
double contrast(Color a, Color b);
/// The one of `dark` and `light` that reads better on `ground`.
Color readable_on(Color ground, Color dark, Color light);

}  // namespace headscope
