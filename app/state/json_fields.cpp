#include "app/state/json_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/io/strict_json.h"

namespace headscope {

using nlohmann::json;

JsonFields::JsonFields(const json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) throw Error(where_, "a JSON object", json_excerpt(value));
}

const json* JsonFields::find(const char* key) {
  known_.emplace_back(key);
  const auto found = value_.find(key);
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

std::string JsonFields::where(const char* key) const {
  return fmt::format("{}: \"{}\"", where_, key);
}

void JsonFields::refuse(const char* key, const std::string& expected, const std::string& found) const {
  throw Error(where(key), expected, found);
}

bool JsonFields::read(const char* key, std::string& out) {
  const json* value = find(key);
  if (!value) return false;
  if (!value->is_string()) refuse(key, "a text", json_excerpt(*value));
  out = value->get<std::string>();
  return true;
}

bool JsonFields::read(const char* key, bool& out) {
  const json* value = find(key);
  if (!value) return false;
  if (!value->is_boolean()) refuse(key, "true or false", json_excerpt(*value));
  out = value->get<bool>();
  return true;
}

bool JsonFields::read(const char* key, double& out, double low, double high) {
  const json* value = find(key);
  if (!value) return false;
  const double number = value->is_number() ? value->get<double>() : low - 1;
  if (!(number >= low && number <= high))
    refuse(key, fmt::format("a number from {} to {}", low, high), json_excerpt(*value));
  out = number;
  return true;
}

bool JsonFields::read(const char* key, std::int64_t& out, std::int64_t low, std::int64_t high) {
  const json* value = find(key);
  if (!value) return false;
  const bool fits = value->is_number_integer() && *value >= low && *value <= high;
  if (!fits) refuse(key, fmt::format("a whole number from {} to {}", low, high), json_excerpt(*value));
  out = value->get<std::int64_t>();
  return true;
}

void JsonFields::done() const {
  for (const auto& item : value_.items())
    if (std::ranges::find(known_, item.key()) == known_.end())
      throw Error(where_, fmt::format("only the keys {}", fmt::join(known_, ", ")), "\"" + item.key() + "\"");
}

}  // namespace headscope
