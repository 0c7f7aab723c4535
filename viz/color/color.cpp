#include "viz/color/color.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headscope {

namespace {

double linear_of(std::uint8_t channel) {
  const double s = channel / 255.0;
  return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
}

std::uint8_t channel_of(double linear) {
  const double x = std::clamp(linear, 0.0, 1.0);
  const double s = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(s * 255));
}

double luminance(Color c) {
  return 0.2126 * linear_of(c.r) + 0.7152 * linear_of(c.g) + 0.0722 * linear_of(c.b);
}

std::uint8_t mixed(std::uint8_t from, std::uint8_t to, double t) {
  return static_cast<std::uint8_t>(std::lround(from + (to - from) * t));
}

}  // namespace

Color with_opacity(Color color, double opacity) {
  color.a = static_cast<std::uint8_t>(std::lround(std::clamp(opacity, 0.0, 1.0) * 255));
  return color;
}

std::optional<Color> parse_color(std::string_view text) {
  if (text.size() != 7 || text[0] != '#') return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(1)) {
    std::uint32_t digit = 0;
    if (c >= '0' && c <= '9')
      digit = static_cast<std::uint32_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<std::uint32_t>(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F')
      digit = static_cast<std::uint32_t>(c - 'A' + 10);
    else
      return std::nullopt;
    value = value * 16 + digit;
  }
  return rgb(value);
}

std::string hex(Color color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.r, color.g, color.b);
}

Color over(Color top, Color bottom) {
  const double t = top.a / 255.0;
  return {mixed(bottom.r, top.r, t), mixed(bottom.g, top.g, t), mixed(bottom.b, top.b, t)};
}

Oklab to_oklab(Color c) {
  const double r = linear_of(c.r), g = linear_of(c.g), b = linear_of(c.b);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

Color from_oklab(const Oklab& c) {
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(c.L + 0.3963377774 * c.a + 0.2158037573 * c.b);
  const double m = cube(c.L - 0.1055613458 * c.a - 0.0638541728 * c.b);
  const double s = cube(c.L - 0.0894841775 * c.a - 1.2914855480 * c.b);
  return {channel_of(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          channel_of(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          channel_of(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

Color mix(Color from, Color to, double t) {
  const Oklab a = to_oklab(from), b = to_oklab(to);
  Color out = from_oklab({a.L + (b.L - a.L) * t, a.a + (b.a - a.a) * t, a.b + (b.b - a.b) * t});
  out.a = mixed(from.a, to.a, t);
  return out;
}

double lightness(Color color) {
  const double y = luminance(color);
  return y <= 216.0 / 24389 ? y * 24389 / 27 : 116 * std::cbrt(y) - 16;
}

double contrast(Color a, Color b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

Color readable_on(Color ground, Color dark, Color light) {
  return contrast(dark, ground) >= contrast(light, ground) ? dark : light;
}

}  // namespace headscope
