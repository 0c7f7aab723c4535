#pragma once
// Reading the JSON files of a tokenizer with errors that name the file and the key. A view points into a document that
// its caller keeps alive.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headscope {

/// Parses the file, whose outermost value must be an object. Throws Error when it is unreadable, not JSON, nested
/// deeper than any tokenizer's file, or writes a key twice in one object.
nlohmann::json read_json_file(const std::filesystem::path& path);

class JsonView {
 public:
  /// `where` is how Errors call this value: "tokenizer.json: model.vocab".
  JsonView(const nlohmann::json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  /// The member, or nullopt when it is absent or null. Throws Error when this is no object.
  std::optional<JsonView> find(std::string_view key) const;
  /// The member. Throws Error when it is absent or null.
  JsonView at(std::string_view key) const;
  std::vector<JsonView> elements() const;                         ///< of an array
  std::vector<std::pair<std::string, JsonView>> members() const;  ///< of an object

  std::string text() const;
  bool flag() const;
  std::int64_t integer() const;
  bool is_text() const;
  bool is_object() const;
  bool is_array() const;

  std::string text_or(std::string_view key, std::string fallback) const;
  bool flag_or(std::string_view key, bool fallback) const;

  const nlohmann::json& json() const { return *value_; }
  const std::string& where() const { return where_; }
  /// Throws the Error for a value that Headscope cannot honour.
  [[noreturn]] void refuse(const std::string& expected, const std::string& found, const std::string& hint = "") const;
  /// What the value is, short enough for a message.
  std::string shown() const;

 private:
  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace headscope
