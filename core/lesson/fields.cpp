#include "core/lesson/fields.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nearest_names.h"

namespace headscope {

FieldLines::FieldLines(const std::string& text, std::string file) : where(std::move(file)) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  std::istringstream in(text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
}

std::string FieldLines::here() const {
  return fmt::format("{}, line {}", where, at + 1);
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

std::vector<std::string> listed_in(const std::string& text, char between) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string each; std::getline(in, each, between);)
    if (std::string word = trimmed(each); !word.empty()) out.push_back(std::move(word));
  return out;
}

void read_fields(FieldLines& in, const std::string& close, const FieldKeys& keys) {
  for (; !in.at_end() && trimmed(in.line()) != close; ++in.at) {
    if (trimmed(in.line()).empty()) continue;
    const std::string place = in.here();
    const auto colon = in.line().find(':');
    const std::string key = trimmed(in.line().substr(0, colon));
    const auto known = keys.find(key);
    if (colon == std::string::npos || known == keys.end()) {
      std::vector<std::string> names;
      for (const auto& [name, ignored] : keys) names.push_back(name);
      throw Error(place, "\"key: value\" with a key that is known", excerpt(in.line(), 60),
                  nearest_names_hint(key, names));
    }
    std::string value = trimmed(in.line().substr(colon + 1));
    while (in.at + 1 < in.lines.size() && in.lines[in.at + 1].starts_with(' ') && !trimmed(in.lines[in.at + 1]).empty())
      value += (value.empty() ? "" : " ") + trimmed(in.lines[++in.at]);
    known->second(value);
  }
  if (in.at_end() && close.empty()) return;
  if (in.at_end()) throw Error(in.here(), "a line \"" + close + "\"", "the end of the file");
  ++in.at;
}

}  // namespace headscope
