#pragma once
// Reading JSON files that may lie: what a value must be is said where it is asked for, and an Error names the file and
// the way to the value, "tokenizer.json: model.vocab". Views point into a document that their caller keeps alive.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/named_values.h"

namespace headscope {

/// Parses the file, whose outermost value must be an object. Throws Error when it is unreadable, not JSON, nested
/// deeper than any tokenizer's file, or writes a key twice in one object.
nlohmann::json read_json_file(const std::filesystem::path& path);

/// One value. What it is asked for and is not, is an Error.
class JsonView {
 public:
  static constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

  /// `where` is how Errors call this value: "tokenizer.json: model.vocab".
  JsonView(const nlohmann::json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  /// The member, or nullopt when it is absent or null. Throws Error when this is no object.
  std::optional<JsonView> find(std::string_view key) const;
  /// The member. Throws Error when it is absent or null.
  JsonView at(std::string_view key) const;
  /// Of an array of at least `least` and at most `most` of what is called `of`.
  std::vector<JsonView> elements(const std::string& of = "values", std::size_t least = 0,
                                 std::size_t most = std::numeric_limits<std::size_t>::max()) const;
  std::vector<std::pair<std::string, JsonView>> members() const;  ///< of an object

  std::string text() const;
  bool flag() const;
  /// A whole number inside [low, high].
  std::int64_t integer(std::int64_t low = lowest, std::int64_t high = highest) const;
  /// The same of an int, and of the whole range of unsigned numbers.
  int small(int low = std::numeric_limits<int>::min(), int high = std::numeric_limits<int>::max()) const {
    return static_cast<int>(integer(low, high));
  }
  std::uint64_t natural() const;
  double number() const;
  double number(double low, double high) const;  ///< finite
  /// The value whose word this is.
  template <class Value, std::size_t n>
  Value choice(const NamedValue<Value> (&names)[n]) const {
    const auto found = is_text() ? value_in(names, text()) : std::nullopt;
    if (!found) refuse("one of " + listed(names), shown());
    return *found;
  }
  bool is_text() const;
  bool is_object() const;
  bool is_array() const;

  std::string text_or(std::string_view key, std::string fallback) const;
  bool flag_or(std::string_view key, bool fallback) const;

  const nlohmann::json& json() const { return *value_; }
  const std::string& where() const { return where_; }
  /// Throws the Error for a value that Headscope cannot honour.
  [[noreturn]] void refuse(const std::string& expected, const std::string& found, const std::string& hint = "") const;
  [[noreturn]] void refuse(const std::string& expected) const { refuse(expected, shown()); }
  /// What the value is, short enough for a message.
  std::string shown() const;

 private:
  const nlohmann::json* value_;
  std::string where_;
};

/// An object of which every key must be one that was asked for. Absent keys keep what they were.
class JsonFields {
 public:
  /// Throws Error unless it is an object.
  explicit JsonFields(JsonView value);
  JsonFields(const nlohmann::json& value, std::string where) : JsonFields(JsonView(value, std::move(where))) {}

  /// The member, or nullopt when it is absent or null.
  std::optional<JsonView> find(const char* key);
  bool read(const char* key, std::string& out);
  bool read(const char* key, bool& out);
  /// A finite number inside [low, high].
  bool read(const char* key, double& out, double low, double high);
  /// A whole number inside [low, high].
  bool read(const char* key, std::int64_t& out, std::int64_t low, std::int64_t high);
  bool read(const char* key, int& out, int low, int high);
  bool read(const char* key, std::filesystem::path& out);
  template <class Value, std::size_t n>
  bool read(const char* key, Value& out, const NamedValue<Value> (&names)[n]) {
    const auto value = find(key);
    if (value) out = value->choice(names);
    return value.has_value();
  }
  /// A word that `parse` knows; `words` lists them for the error.
  template <class Value, class Parse>
  void read_word(const char* key, Value& out, Parse parse, const char* words) {
    const auto word = find(key);
    if (!word) return;
    const auto value = parse(word->text());
    if (!value) word->refuse(words);
    out = *value;
  }
  /// Throws Error when there is a key that was never asked for.
  void done() const;
  const JsonView& value() const { return value_; }

 private:
  JsonView value_;
  std::vector<std::string> known_;
};

}  // namespace headscope
