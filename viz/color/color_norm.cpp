#include "viz/color/color_norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/base/named_values.h"
#include "core/base/words.h"

namespace headscope {

namespace {

constexpr int longest_whole = 4;  // 12000; more zeros are a power of ten

constexpr NamedValue<Scale> scale_names[] = {
    {"linear", Scale::linear}, {"log", Scale::log}, {"per-row", Scale::per_row}};

/// 1, 2 or 5 times a power of ten: the smallest such step with at most `count` steps in `span`.
double round_step(double span, int count) {
  const double raw = span / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<Tick> log_ticks(const ColorNorm& norm, int count) {
  const double first = std::log10(norm.low), last = std::log10(norm.high);
  const int begin = static_cast<int>(std::ceil(first - 1e-9)), end = static_cast<int>(std::floor(last + 1e-9));
  const int every = std::max(1, (end - begin + count - 1) / std::max(count, 1));
  std::vector<Tick> out;
  // Counted down from the top, so that 1 is always among the ticks of a map of probabilities.
  for (int exponent = end; exponent >= begin; exponent -= every) {
    const double value = std::pow(10.0, exponent);
    out.push_back({norm(value), value, power_of_ten(exponent)});
  }
  std::reverse(out.begin(), out.end());
  // An end that is no power of ten states its own value, and a decade crowding it gives way: the ends are the range.
  if (!out.empty() && out.front().unit > 1e-6 && out.front().unit < 0.12) out.erase(out.begin());
  if (!out.empty() && out.back().unit < 1 - 1e-6 && out.back().unit > 0.85) out.pop_back();
  if (out.empty() || out.front().unit > 1e-6) out.insert(out.begin(), {0, norm.low, short_number(norm.low, 2)});
  if (out.back().unit < 1 - 1e-6) out.push_back({1, norm.high, short_number(norm.high, 2)});
  return out;
}

}  // namespace

std::string_view name(Scale scale) {
  return name_in(scale_names, scale);
}

std::optional<Scale> parse_scale(std::string_view text) {
  return value_in(scale_names, text);
}

double ColorNorm::operator()(double value, double row_high) const {
  if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
  double unit = 0;
  switch (scale) {
    case Scale::linear:
      unit = high > low ? (value - low) / (high - low) : 0;
      break;
    case Scale::log:
      unit = value > low && high > low ? std::log(value / low) / std::log(high / low) : 0;
      break;
    case Scale::per_row:
      unit = row_high > 0 ? value / row_high : 0;
      break;
  }
  return std::isnan(unit) ? 0 : std::clamp(unit, 0.0, 1.0);
}

double ColorNorm::invert(double unit) const {
  switch (scale) {
    case Scale::linear:
      return low + unit * (high - low);
    case Scale::log:
      return low * std::pow(high / low, unit);
    case Scale::per_row:
      return unit;
  }
  return unit;
}

std::vector<Tick> ticks(const ColorNorm& norm, int count) {
  if (norm.scale == Scale::per_row) return {{0, 0, "0"}, {0.5, 0.5, "½"}, {1, 1, said("row max")}};
  const double span = norm.high - norm.low;
  if (!(span > 0) || !std::isfinite(span)) return {{0, norm.low, short_number(norm.low)}};
  if (norm.scale == Scale::log) return log_ticks(norm, count);
  std::vector<Tick> out{{0, norm.low, short_number(norm.low)}};
  const double step = round_step(span, std::max(count - 1, 1));
  for (double k = std::ceil(norm.low / step); k * step < norm.high; ++k) {
    const double value = k * step, unit = norm(value);
    // Close to an end the round value gives way: the ends state the range.
    if (unit > 0.18 && unit < 0.82) out.push_back({unit, value, short_number(value)});
  }
  out.push_back({1, norm.high, short_number(norm.high)});
  return out;
}

std::string power_of_ten(int exponent) {
  if (exponent == 0) return "1";
  if (exponent == 1) return "10";
  static constexpr std::string_view digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char c : std::to_string(std::abs(exponent))) text += digits[c - '0'];
  return text;
}

std::string short_number(double value, int digits) {
  if (value == 0) return "0";  // also −0
  std::string text = fmt::format("{:.{}g}", std::abs(value), digits);
  if (const auto e = text.find('e'); e != std::string::npos) {
    const int exponent = std::stoi(text.substr(e + 1));
    const std::string mantissa = text.substr(0, e);
    if (exponent > 0 && exponent <= longest_whole)
      text = fmt::format("{:.0f}", std::stod(text));
    else
      text = (mantissa == "1" ? "" : mantissa + "·") + power_of_ten(exponent);
  }
  return value < 0 ? "−" + text : text;
}

std::string quantity(double value, std::string_view unit, int digits) {
  static constexpr std::string_view prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < std::size(prefixes)) value /= 1000, ++prefix;
  return fmt::format("{} {}{}", short_number(value, digits), prefixes[prefix], unit);
}

}  // namespace headscope
