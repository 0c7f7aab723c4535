#include "viz/color/colormap.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {

struct Recipe {
  std::string_view id, title;
  bool diverging;
  std::vector<std::uint32_t> controls;
};

// "inferno" follows the map of that name by Smith & van der Walt (2015, CC0) from a slightly lifted start, so that
// weight zero is a visible violet beside the neutral of masked cells. "viridis" is theirs too. "paper" turns the same
// road round.
std::vector<Recipe> recipes() {
  return {
      {"inferno",
       to_say("Inferno"),
       false,
       {0x0F0828, 0x220F4C, 0x4B0C6B, 0x781C6D, 0xA52C60, 0xCF4446, 0xED6925, 0xFB9A06, 0xF7D03C, 0xFCFFA4}},
      {"paper",
       to_say("Paper"),
       false,
       {0xFFFBF0, 0xFEE9C2, 0xFDCB8B, 0xFAA65E, 0xF17C4A, 0xDC5148, 0xB62F57, 0x86215F, 0x52185A, 0x1E0B38}},
      {"viridis",
       to_say("Viridis"),
       false,
       {0x440154, 0x482878, 0x3E4A89, 0x31688E, 0x26828E, 0x1F9E89, 0x35B779, 0x6DCD59, 0xB4DE2C, 0xFDE725}},
      {"grey", to_say("Grey"), false, {0xFFFFFF, 0xC6C6C6, 0x919191, 0x5E5E5E, 0x303030, 0x000000}},
      {"diverging-dark",
       to_say("Blue, neutral, orange"),
       true,
       {0xA9D2FF, 0x6AA9FF, 0x3F74BD, 0x274A79, 0x24262B, 0x76431C, 0xB9651C, 0xF08A34, 0xFFC48F}},
      {"diverging-light",
       to_say("Blue, neutral, orange"),
       true,
       {0x0B3A75, 0x2566B0, 0x6699D2, 0xAFCBEA, 0xF5F4F2, 0xF3C9A2, 0xE0904C, 0xB65A12, 0x723203}},
  };
}

// Slopes of a cubic through equally spaced points that never overshoots them (Fritsch & Carlson, Monotone piecewise
// cubic interpolation, 1980): lightness stays monotone between monotone controls.
std::vector<double> monotone_slopes(const std::vector<double>& y) {
  std::vector<double> slope(y.size());
  const std::size_t last = y.size() - 1;
  slope[0] = y[1] - y[0];
  slope[last] = y[last] - y[last - 1];
  for (std::size_t i = 1; i < last; ++i) {
    const double before = y[i] - y[i - 1], after = y[i + 1] - y[i];
    slope[i] = before * after <= 0 ? 0 : 2 * before * after / (before + after);
  }
  return slope;
}

double cubic(const std::vector<double>& y, const std::vector<double>& slope, double x) {
  const std::size_t i = std::min(static_cast<std::size_t>(x), y.size() - 2);
  const double t = x - static_cast<double>(i), u = 1 - t;
  return y[i] * (1 + 2 * t) * u * u + slope[i] * t * u * u + y[i + 1] * t * t * (3 - 2 * t) - slope[i + 1] * t * t * u;
}

Colormap cook(const Recipe& recipe) {
  std::vector<double> L, a, b;
  for (const std::uint32_t control : recipe.controls) {
    const Oklab lab = to_oklab(rgb(control));
    L.push_back(lab.L);
    a.push_back(lab.a);
    b.push_back(lab.b);
  }
  const std::vector<double> slope_L = monotone_slopes(L), slope_a = monotone_slopes(a), slope_b = monotone_slopes(b);
  Colormap map{recipe.id, recipe.title, recipe.diverging, {}};
  for (int i = 0; i < Colormap::size; ++i) {
    const double x = static_cast<double>(i) * static_cast<double>(L.size() - 1) / (Colormap::size - 1);
    nth(map.table, i) = from_oklab({cubic(L, slope_L, x), cubic(a, slope_a, x), cubic(b, slope_b, x)});
  }
  return map;
}

}  // namespace

Color Colormap::at(double t) const {
  if (!(t > 0)) return table.front();
  return nth(table, std::lround(std::min(t, 1.0) * (size - 1)));
}

std::span<const Colormap> colormaps() {
  static const std::vector<Colormap> all = [] {
    std::vector<Colormap> maps;
    for (const Recipe& recipe : recipes()) maps.push_back(cook(recipe));
    return maps;
  }();
  return all;
}

const Colormap& colormap(std::string_view id) {
  std::string known;
  for (const Colormap& map : colormaps()) {
    if (map.id == id) return map;
    known += (known.empty() ? "" : ", ") + std::string(map.id);
  }
  throw Error("colour map", "one of " + known, "'" + std::string(id) + "'");
}

}  // namespace headscope
