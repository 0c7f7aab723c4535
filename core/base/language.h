#pragma once
// The languages that people read, by their names in POSIX locales: "de", "zh", "pt_BR".

#include <optional>
#include <string>
#include <string_view>

namespace headscope {

/// Two or three small letters, and perhaps "_" and two large ones; what a locale adds, ".UTF-8" or "@euro", is left
/// out, and "-" taken for "_". "C" and "POSIX" are "en". Nothing for anything else.
std::optional<std::string> parse_language(std::string_view words);
/// What the system speaks: LC_ALL, else LC_MESSAGES, else LANG, of which the first that is set decides; "en" where none
/// says a language.
std::string system_language();

}  // namespace headscope
