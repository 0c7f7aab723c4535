#pragma once
// Filters and methods of strings. Private to core/text.

#include <string>
#include <string_view>

#include "core/text/jinja/builtins.h"

namespace headscope::jinja {

Function find_text_filter(std::string_view name);
Function find_text_method(std::string_view name);

std::string lower(const std::string& text);
std::string upper(const std::string& text);
/// Without the characters of `of` (null: white space) at its ends.
std::string strip(const std::string& text, const std::string* of, bool left, bool right);

}  // namespace headscope::jinja
