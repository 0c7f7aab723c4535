#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/lesson/lesson.h"

namespace headscope {

namespace {

/// Where the formula that begins at `from` ends, quotes and brackets passed over; a colon of its own begins the format.
struct Ends {
  std::size_t formula, all;
};
std::optional<Ends> ends_of(std::string_view text, std::size_t from) {
  char quote = 0;
  int depth = 0;
  std::size_t colon = std::string_view::npos;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (c == '}') {
      if (depth == 0) return Ends{colon == std::string_view::npos ? i : colon, i};
      --depth;
    } else if (c == ':' && depth == 0) {
      colon = i;
    }
  }
  return std::nullopt;
}

/// "−" for a minus, as everywhere on the screen.
std::string typographic(std::string number) {
  if (number.starts_with('-')) number.replace(0, 1, "−");
  return number;
}

/// How a number is written: ".2f", ".3g", ".0%", "g".
struct Digits {
  int count = -1;  ///< −1 = none are named
  char kind = 'g';
};
Digits digits_of(const std::string& format, const std::string& where) {
  Digits out;
  std::size_t at = 0;
  if (format.starts_with('.')) {
    out.count = 0;
    for (at = 1; at < format.size() && at < 3 && format[at] >= '0' && format[at] <= '9'; ++at)
      out.count = 10 * out.count + (format[at] - '0');
  }
  const bool named = at + 1 == format.size() && std::string_view("fge%").find(format[at]) != std::string_view::npos;
  if (!named || at == 1) throw Error(where, "a format such as .2f, .3g or .0%", "\"" + excerpt(format, 40) + "\"");
  out.kind = format[at];
  return out;
}

std::string written(const jinja::Value& value, const std::string& format, const std::string& where) {
  if (!value.defined()) throw Error(where, "a number or a text", value.kind());
  if (!value.number() || value.is<bool>()) {
    if (!format.empty()) throw Error(where, fmt::format("a number for \"{}\"", format), value.kind());
    return value.printed();
  }
  if (format.empty() && value.whole()) return typographic(std::to_string(value.integer()));
  const double number = value.real();
  if (std::isnan(number)) return "–";
  const Digits digits = digits_of(format.empty() ? ".3g" : format, where);
  if (digits.kind == '%') return typographic(fmt::format("{:.{}f} %", 100 * number, std::max(digits.count, 0)));
  if (digits.kind == 'f') return typographic(fmt::format("{:.{}f}", number, std::max(digits.count, 0)));
  if (digits.kind == 'e') return typographic(fmt::format("{:.{}e}", number, std::max(digits.count, 0)));
  return typographic(digits.count < 0 ? fmt::format("{:g}", number) : fmt::format("{:.{}g}", number, digits.count));
}

}  // namespace

LessonText::LessonText(const std::string& source, const std::string& where) {
  std::string before;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if ((c == '{' || c == '}') && i + 1 < source.size() && source[i + 1] == c) {  // as fmt writes a brace
      before += c;
      ++i;
    } else if (c == '}') {
      throw Error(where, "a { before the }, or }}", excerpt(source, 80));
    } else if (c != '{') {
      before += c;
    } else {
      const auto ends = ends_of(source, i + 1);
      if (!ends) throw Error(where, "a } behind the formula", excerpt(source.substr(i), 80));
      std::string format;
      if (ends->formula < ends->all) format = source.substr(ends->formula + 1, ends->all - ends->formula - 1);
      parts_.push_back({std::move(before), Formula(source.substr(i + 1, ends->formula - i - 1), where), format});
      before.clear();
      i = ends->all;
    }
  }
  if (!before.empty() || parts_.empty()) parts_.push_back({std::move(before), std::nullopt, ""});
}

std::string LessonText::told(const jinja::Members& names) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.before;
    if (part.formula)
      out += written(part.formula->value(names), part.format,
                     part.formula->where() + ": {" + part.formula->source() + "}");
  }
  return out;
}

}  // namespace headscope
