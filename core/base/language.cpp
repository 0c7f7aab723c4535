#include "core/base/language.h"

#include <algorithm>
#include <cstdlib>

namespace headscope {

namespace {
bool letters_between(std::string_view text, char first, char last) {
  return std::ranges::all_of(text, [&](char c) { return c >= first && c <= last; });
}
}  // namespace

std::optional<std::string> parse_language(std::string_view words) {
  std::string name(words.substr(0, words.find_first_of(".@")));
  std::ranges::replace(name, '-', '_');
  if (name == "C" || name == "POSIX") return "en";
  const std::string_view all = name, tongue = all.substr(0, all.find('_'));
  const std::string_view land = tongue.size() == all.size() ? "" : all.substr(tongue.size() + 1);
  if (tongue.size() < 2 || tongue.size() > 3 || !letters_between(tongue, 'a', 'z')) return std::nullopt;
  if (tongue.size() < all.size() && (land.size() != 2 || !letters_between(land, 'A', 'Z'))) return std::nullopt;
  return name;
}

std::string system_language() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"})
    if (const char* value = std::getenv(name); value && *value) return parse_language(value).value_or("en");
  return "en";
}

}  // namespace headscope
