#pragma once
// JSON from files that may lie: refuses what the usual parser lets pass.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace headscope {

/// Throws Error at `where` on a syntax error, invalid UTF-8, a key that appears twice in one object, or arrays and
/// objects nested deeper than `max_depth`. Linear in the text's length.
nlohmann::json parse_strict_json(std::string_view text, const std::string& where, int max_depth = 16);

/// How a value is shown in an error: its JSON, cut after 60 characters.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace headscope
