#include "core/io/json_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/bare_infinity.h"
#include "core/io/strict_json.h"

namespace headscope {

std::string strict_infinities(std::string text) {
  constexpr std::string_view bare = "Infinity";
  if (text.find(bare) == std::string::npos) return text;
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    if (!quoted && text.compare(i, bare.size(), bare) == 0) {
      out += R"({"__float__":"Infinity"})";
      i += bare.size();
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    out += text[i++];
  }
  return out;
}

using nlohmann::json;

namespace {
constexpr std::size_t kLargestFile = std::size_t{256} << 20;
constexpr int kDeepestNesting = 64;
}  // namespace

json read_json_file(const std::filesystem::path& path) {
  json document = parse_strict_json(strict_infinities(read_file(path, kLargestFile)), path.string(), kDeepestNesting);
  if (!document.is_object()) throw Error(path.string(), "a JSON object", json_excerpt(document));
  return document;
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  if (!value_->is_object()) refuse("an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  const bool is_file = where_.find(": ") == std::string::npos;
  return JsonView(*found, fmt::format("{}{}{}", where_, is_file ? ": " : ".", excerpt(key)));
}

JsonView JsonView::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  refuse(fmt::format("the key '{}'", key), "none");
}

std::vector<JsonView> JsonView::elements(const std::string& of, std::size_t least, std::size_t most) const {
  const std::size_t count = value_->size();
  if (!value_->is_array() || count < least || count > most)
    refuse(least == 0      ? "an array of " + of
           : least == most ? fmt::format("an array of {} {}", least, of)
                           : fmt::format("an array of at least {} {}", least, of));
  std::vector<JsonView> views;
  views.reserve(count);
  for (std::size_t i = 0; i < count; ++i) views.emplace_back((*value_)[i], fmt::format("{}[{}]", where_, i));
  return views;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  if (!value_->is_object()) refuse("an object");
  std::vector<std::pair<std::string, JsonView>> views;
  for (const auto& [key, value] : value_->items())
    views.emplace_back(key, JsonView(value, fmt::format("{}.{}", where_, excerpt(key, 60))));
  return views;
}

std::string JsonView::text() const {
  if (!value_->is_string()) refuse("a text");
  return value_->get<std::string>();
}

bool JsonView::flag() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::int64_t JsonView::integer(std::int64_t low, std::int64_t high) const {
  // Unsigned numbers of 2^63 and more would turn negative in get<int64_t>.
  const bool whole = value_->is_number_integer() &&
                     (!value_->is_number_unsigned() || value_->get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  const std::int64_t number = whole ? value_->get<std::int64_t>() : 0;
  if (!whole || number < low || number > high) {
    const bool least = low != lowest, most = high != highest;
    constexpr std::int64_t least_int = std::numeric_limits<int>::min(), most_int = std::numeric_limits<int>::max();
    refuse(low == least_int && high == most_int ? "a whole number of 32 bits"
           : least && most                      ? fmt::format("a whole number from {} to {}", low, high)
           : least                              ? fmt::format("a whole number of at least {}", low)
                                                : "a whole number");
  }
  return number;
}

std::uint64_t JsonView::natural() const {
  if (!value_->is_number_unsigned()) refuse("a whole number of at least 0");
  return value_->get<std::uint64_t>();
}

double JsonView::number() const {
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

double JsonView::number(double low, double high) const {
  const double number = value_->is_number() ? value_->get<double>() : low - 1;
  if (!(number >= low && number <= high)) refuse(fmt::format("a number from {} to {}", low, high));
  return number;
}

bool JsonView::is_text() const {
  return value_->is_string();
}
bool JsonView::is_object() const {
  return value_->is_object();
}
bool JsonView::is_array() const {
  return value_->is_array();
}

std::string JsonView::text_or(std::string_view key, std::string fallback) const {
  const auto found = find(key);
  return found ? found->text() : std::move(fallback);
}

bool JsonView::flag_or(std::string_view key, bool fallback) const {
  const auto found = find(key);
  return found ? found->flag() : fallback;
}

void JsonView::refuse(const std::string& expected, const std::string& found, const std::string& hint) const {
  throw Error(where_, expected, found, hint);
}

std::string JsonView::shown() const {
  return json_excerpt(*value_);
}

JsonFields::JsonFields(JsonView value) : value_(std::move(value)) {
  if (!value_.is_object()) value_.refuse("a JSON object");
}

std::optional<JsonView> JsonFields::find(const char* key) {
  known_.emplace_back(key);
  return value_.find(key);
}

bool JsonFields::read(const char* key, std::string& out) {
  const auto value = find(key);
  if (value) out = value->text();
  return value.has_value();
}

bool JsonFields::read(const char* key, bool& out) {
  const auto value = find(key);
  if (value) out = value->flag();
  return value.has_value();
}

bool JsonFields::read(const char* key, double& out, double low, double high) {
  const auto value = find(key);
  if (value) out = value->number(low, high);
  return value.has_value();
}

bool JsonFields::read(const char* key, std::int64_t& out, std::int64_t low, std::int64_t high) {
  const auto value = find(key);
  if (value) out = value->integer(low, high);
  return value.has_value();
}

bool JsonFields::read(const char* key, int& out, int low, int high) {
  const auto value = find(key);
  if (value) out = value->small(low, high);
  return value.has_value();
}

bool JsonFields::read(const char* key, std::filesystem::path& out) {
  std::string written;
  const bool there = read(key, written);
  if (there) out = written;
  return there;
}

void JsonFields::done() const {
  for (const auto& item : value_.json().items())
    if (std::ranges::find(known_, item.key()) == known_.end())
      value_.refuse(fmt::format("only the keys {}", fmt::join(known_, ", ")), "\"" + item.key() + "\"");
}

}  // namespace headscope
