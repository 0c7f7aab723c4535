#pragma once
// Reading the JSON files that the window writes (sessions, settings): absent keys keep what they were, unknown keys and
// wrong values are refused by name.

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

class JsonFields {
 public:
  /// `value` outlives this. Throws Error at `where` unless it is an object.
  JsonFields(const nlohmann::json& value, std::string where);

  /// The member, or nullptr when it is absent or null.
  const nlohmann::json* find(const char* key);
  bool read(const char* key, std::string& out);
  bool read(const char* key, bool& out);
  /// A finite number inside [low, high].
  bool read(const char* key, double& out, double low, double high);
  /// A whole number inside [low, high].
  bool read(const char* key, std::int64_t& out, std::int64_t low, std::int64_t high);
  /// A word that `parse` knows; `words` lists them for the error.
  template <class Value, class Parse>
  void read_word(const char* key, Value& out, Parse parse, const char* words) {
    std::string text;
    if (!read(key, text)) return;
    if (const auto value = parse(text))
      out = *value;
    else
      refuse(key, words, "\"" + text + "\"");
  }
  std::string where(const char* key) const;
  [[noreturn]] void refuse(const char* key, const std::string& expected, const std::string& found) const;
  /// Throws Error when a key was never asked for.
  void done() const;

 private:
  const nlohmann::json& value_;
  std::string where_;
  std::vector<std::string> known_;
};

}  // namespace headscope
