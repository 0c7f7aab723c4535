#pragma once
// Value → [0, 1] and back: the one place that says how bright a number is. Printers, the window's textures and the
// ticks of every colour bar ask here.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

enum class Scale {
  linear,   ///< low → 0, high → 1
  log,      ///< the same on logarithms; low must be > 0; anything at or below low → 0
  per_row,  ///< 0 → 0, the row's own largest value → 1
};

/// "linear", "log", "per-row"; parse gives nullopt for anything else.
std::string_view name(Scale scale);
std::optional<Scale> parse_scale(std::string_view text);

struct ColorNorm {
  Scale scale = Scale::linear;
  double low = 0, high = 1;

  /// Clamped to [0, 1]; NaN stays NaN. `row_high` is read by per_row only; a row without a positive value is all 0.
  double operator()(double value, double row_high = 1) const;
  /// The value that maps to `unit`. Per-row: a share of the row's largest value.
  double invert(double unit) const;
};

struct Tick {
  double unit = 0;  ///< place on the bar, 0 … 1
  double value = 0;
  std::string text;  ///< "0.25", "10⁻³", "max"
};

/// Round values inside the range, both ends among them, at most about `count` of them (log: whole decades and both
/// ends).
std::vector<Tick> ticks(const ColorNorm& norm, int count = 5);

/// As papers print them: "10⁻³", "1", "10⁵".
std::string power_of_ten(int exponent);
/// Shortest usual form with at most `digits` significant digits: "0.25", "12", "1200", "1.5·10⁻⁷", "10⁶".
std::string short_number(double value, int digits = 3);
/// "369 kB", "8.39 MFLOP": short_number() with a decimal prefix of the unit.
std::string quantity(double value, std::string_view unit, int digits = 3);

}  // namespace headscope
