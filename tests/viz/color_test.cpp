#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "viz/color/color.h"
#include "viz/color/color_norm.h"
#include "viz/color/colormap.h"

namespace headscope::color_test {

TEST_CASE("colours read and write as hex and reject anything else") {
  CHECK(parse_color("#6AA9ff") == rgb(0x6AA9FF));
  CHECK(hex(rgb(0x6AA9FF)) == "#6aa9ff");
  for (const char* bad : {"", "#", "6aa9ff", "#6aa9f", "#6aa9ffx", "#6aa9fg", "#-12345"}) CHECK_FALSE(parse_color(bad));
}

TEST_CASE("lightness and contrast match the definitions at known colours") {
  CHECK(lightness(rgb(0x000000)) == doctest::Approx(0));
  CHECK(lightness(rgb(0xFFFFFF)) == doctest::Approx(100));
  CHECK(lightness(rgb(0x777777)) == doctest::Approx(50.03).epsilon(0.001));  // CIE L* of sRGB 119
  CHECK(contrast(rgb(0x000000), rgb(0xFFFFFF)) == doctest::Approx(21));
  CHECK(readable_on(rgb(0xFCFFA4), rgb(0x000000), rgb(0xFFFFFF)) == rgb(0x000000));
  CHECK(readable_on(rgb(0x1F0F47), rgb(0x000000), rgb(0xFFFFFF)) == rgb(0xFFFFFF));
}

TEST_CASE("Oklab goes there and back to the same byte") {
  for (const std::uint32_t c : {0x000000u, 0xFFFFFFu, 0x6AA9FFu, 0x123456u, 0xFC00A4u, 0x00FF00u})
    CHECK(from_oklab(to_oklab(rgb(c))) == rgb(c));
  CHECK(to_oklab(rgb(0xFFFFFF)).L == doctest::Approx(1).epsilon(1e-6));
  CHECK(to_oklab(rgb(0xFF0000)).a == doctest::Approx(0.22486).epsilon(1e-4));  // published value of sRGB red
  CHECK(mix(rgb(0x101010), rgb(0xF0F0F0), 0) == rgb(0x101010));
  CHECK(mix(rgb(0x101010), rgb(0xF0F0F0), 1) == rgb(0xF0F0F0));
  CHECK(over({255, 0, 0, 51}, rgb(0x000000)) == rgb(0x330000));
}

TEST_CASE("sequential maps move in one direction of lightness, so a grey print keeps the order") {
  for (const Colormap& map : colormaps()) {
    if (map.diverging) continue;
    CAPTURE(map.id);
    const double sign = lightness(map.table.back()) > lightness(map.table.front()) ? 1 : -1;
    double largest = 0;
    for (int i = 1; i < Colormap::size; ++i) {
      const double step = sign * (lightness(map.table[static_cast<std::size_t>(i)]) -
                                  lightness(map.table[static_cast<std::size_t>(i) - 1]));
      CHECK(step > -0.1);  // 8-bit rounding moves L* by less than this
      largest = std::max(largest, step);
    }
    CHECK(largest < 1.2);  // no visible jump either
    CHECK(std::abs(lightness(map.table.back()) - lightness(map.table.front())) > 70);
  }
}

TEST_CASE("diverging maps are neutral in the middle, and both sides leave it evenly") {
  for (const Colormap& map : colormaps()) {
    if (!map.diverging) continue;
    CAPTURE(map.id);
    const Oklab middle = to_oklab(map.at(0.5));
    CHECK(std::hypot(middle.a, middle.b) < 0.015);
    for (const double side : {0.1, 0.25, 0.4}) {
      const double below = lightness(map.at(0.5 - side)), above = lightness(map.at(0.5 + side));
      CHECK(std::abs(below - above) < 8);             // the same distance from zero looks equally strong
      CHECK(to_oklab(map.at(0.5 - side)).b < -0.02);  // blue below
      CHECK(to_oklab(map.at(0.5 + side)).b > 0.02);   // orange above
    }
  }
}

TEST_CASE("a map clamps, and an unknown one is an error that lists the known") {
  const Colormap& map = colormap("inferno");
  CHECK(map.at(-1) == map.table.front());
  CHECK(map.at(7) == map.table.back());
  CHECK(map.at(std::nan("")) == map.table.front());
  CHECK_THROWS_WITH_AS(colormap("jet"), doctest::Contains("viridis"), Error);
}

TEST_CASE("norms: linear, logarithmic and per row, by hand") {
  const ColorNorm linear{Scale::linear, 0, 0.5};
  CHECK(linear(0.25) == doctest::Approx(0.5));
  CHECK(linear(2) == 1);
  CHECK(linear(-1) == 0);
  CHECK(linear.invert(0.5) == doctest::Approx(0.25));
  const ColorNorm log{Scale::log, 1e-4, 1};
  CHECK(log(1e-2) == doctest::Approx(0.5));
  CHECK(log(1e-5) == 0);
  CHECK(log(0) == 0);
  CHECK(log(-3) == 0);
  CHECK(log.invert(0.25) == doctest::Approx(1e-3));
  const ColorNorm row{Scale::per_row, 0, 1};
  CHECK(row(0.1, 0.2) == doctest::Approx(0.5));
  CHECK(row(0, 0) == 0);
  CHECK(std::isnan(linear(std::nan(""))));
  CHECK(std::isnan(log(std::nan(""))));
  CHECK(linear(std::numeric_limits<double>::infinity()) == 1);
  const ColorNorm empty{Scale::linear, 0, 0};
  CHECK(empty(0) == 0);
}

TEST_CASE("numbers in short: powers of ten have one form, and thousands none") {
  CHECK(short_number(0.25) == "0.25");
  CHECK(short_number(-1200, 2) == "−1200");
  CHECK(short_number(1000, 2) == "1000");
  CHECK(short_number(1234, 2) == "1200");
  CHECK(short_number(99999, 2) == "10⁵");
  CHECK(short_number(1e6) == "10⁶");
  CHECK(short_number(2.5e-7, 2) == "2.5·10⁻⁷");
  CHECK(short_number(-1e-5) == "−10⁻⁵");
  CHECK(short_number(0.001) == "0.001");
  CHECK(power_of_ten(1) == "10");
  CHECK(power_of_ten(-12) == "10⁻¹²");
}

TEST_CASE("ticks lie at their values and include both ends of the range") {
  for (const ColorNorm& norm :
       {ColorNorm{}, ColorNorm{Scale::linear, 0, 0.0123}, ColorNorm{Scale::linear, -0.37, 0.37},
        ColorNorm{Scale::log, 1e-4, 1}, ColorNorm{Scale::log, 1e-5, 0.34}, ColorNorm{Scale::log, 3e-3, 0.02}}) {
    const std::vector<Tick> all = ticks(norm);
    REQUIRE(all.size() >= 2);
    CHECK(all.size() <= 7);
    CHECK(all.front().unit == 0);
    CHECK(all.back().unit == doctest::Approx(1));
    for (std::size_t i = 0; i < all.size(); ++i) {
      CHECK(norm(all[i].value) == doctest::Approx(all[i].unit));
      if (i) CHECK(all[i].unit > all[i - 1].unit + 0.1);
    }
  }
  CHECK(ticks(ColorNorm{})[1].text == "0.25");
  CHECK(ticks(ColorNorm{Scale::log, 1e-4, 1})[1].text == "10⁻³");
  CHECK(ticks(ColorNorm{Scale::per_row, 0, 1}).back().text == "row max");
  CHECK(parse_scale("per-row") == Scale::per_row);
  CHECK_FALSE(parse_scale("cubic"));
}

TEST_CASE("quantities carry the decimal prefix of their unit") {
  CHECK(quantity(0, "B") == "0 B");
  CHECK(quantity(999, "B") == "999 B");
  CHECK(quantity(999.6, "B") == "1 kB");
  CHECK(quantity(368'640, "B") == "369 kB");
  CHECK(quantity(8'390'000, "FLOP") == "8.39 MFLOP");
  CHECK(quantity(-2.5e12, "B") == "−2.5 TB");
}

}  // namespace headscope::color_test
