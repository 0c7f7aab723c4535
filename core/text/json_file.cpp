#include "core/text/json_file.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/strict_json.h"

namespace headscope {

using nlohmann::json;

namespace {
constexpr std::size_t kLargestFile = std::size_t{256} << 20;
constexpr int kDeepestNesting = 64;
}  // namespace

json read_json_file(const std::filesystem::path& path) {
  json document = parse_strict_json(read_file(path, kLargestFile), path.string(), kDeepestNesting);
  if (!document.is_object()) throw Error(path.string(), "a JSON object", json_excerpt(document));
  return document;
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  if (!value_->is_object()) refuse("an object", shown());
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  const bool is_file = where_.find(": ") == std::string::npos;
  return JsonView(*found, fmt::format("{}{}{}", where_, is_file ? ": " : ".", excerpt(key)));
}

JsonView JsonView::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  refuse(fmt::format("the key '{}'", key), "none");
}

std::vector<JsonView> JsonView::elements() const {
  if (!value_->is_array()) refuse("an array", shown());
  std::vector<JsonView> views;
  views.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) views.emplace_back((*value_)[i], fmt::format("{}[{}]", where_, i));
  return views;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  if (!value_->is_object()) refuse("an object", shown());
  std::vector<std::pair<std::string, JsonView>> views;
  for (const auto& [key, value] : value_->items())
    views.emplace_back(key, JsonView(value, fmt::format("{}.{}", where_, excerpt(key, 60))));
  return views;
}

std::string JsonView::text() const {
  if (!value_->is_string()) refuse("a string", shown());
  return value_->get<std::string>();
}

bool JsonView::flag() const {
  if (!value_->is_boolean()) refuse("true or false", shown());
  return value_->get<bool>();
}

std::int64_t JsonView::integer() const {
  if (!value_->is_number_integer()) refuse("a whole number", shown());
  return value_->get<std::int64_t>();
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

}  // namespace headscope
