#include "core/io/strict_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "core/base/error.h"

namespace headscope {

using nlohmann::json;

json parse_strict_json(std::string_view text, const std::string& where, int max_depth) {
  // keys[d] holds the keys seen so far in the object that is open at depth d.
  std::vector<std::unordered_set<std::string>> keys(static_cast<std::size_t>(max_depth) + 2);
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= max_depth) throw Error(where, fmt::format("JSON nested at most {} deep", max_depth), "more");
      keys[level + 1].clear();
    } else if (event == json::parse_event_t::key) {
      if (!keys[level].insert(parsed.get<std::string>()).second)
        throw Error(where, "every name once", json_excerpt(parsed) + " twice");
    }
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: …": the library's own number helps nobody.
    const std::string message = e.what();
    const auto close = message.find("] ");
    throw Error(where, "valid JSON", close == std::string::npos ? message : message.substr(close + 2, 200));
  }
}

std::string json_excerpt(const json& value) {
  // A value may be large; dumping numbers and short strings is cheap, containers are named by kind and size.
  if (value.is_structured()) return fmt::format("{} of {}", value.is_array() ? "an array" : "an object", value.size());
  std::string text =
      value.dump(-1, ' ', true, json::error_handler_t::replace);  // ASCII: cutting cannot split a character
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace headscope
