#pragma once
// The words of the window, one table per language (assets/words/*.json). The code says them in English, which stands in
// every table on the left. Three marks tell a text that people read from one that programs read, and by them
// tests/words_test.cpp knows what a table has to hold: said("…"), say("… {}", …), to_say("…").
// Thread rule: any thread. Tables live as long as the process, so that what was said stays valid.

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

/// What one language says: English on the left. An entry is taken only if it has the replacement fields of its English
/// ("{}", "{:.2f}"); numbered ones ("{1} … {0}") may stand in any order.
class WordTable {
 public:
  using Entries = std::map<std::string, std::string, std::less<>>;

  /// Everything is said as it stands in the code.
  WordTable() = default;
  explicit WordTable(const Entries& entries);
  /// A file {"English": "…", …}. Throws Error where it cannot be read or is no such table.
  static WordTable read(const std::filesystem::path& file);

  /// Nullptr: this table does not say it.
  const std::string* find(std::string_view english) const;
  const Entries& entries() const { return entries_; }
  /// What was not taken, and why: "expected the fields {0} {1}, found {0}".
  struct Refused {
    std::string english, why;
  };
  const std::vector<Refused>& refused() const { return refused_; }

 private:
  Entries entries_;
  std::vector<Refused> refused_;
};

/// From now on texts are said by this table, of that language; those that were composed before stay as they are.
void use_words(WordTable table, std::string language = "");
/// The language of the table in use, "" = none is.
std::string language_of_words();

/// The text as the table in use says it, else itself.
const char* said(const char* english);
std::string said(const std::string& english);
std::string_view said_view(std::string_view english);
/// Marks a constant that said() says when it is drawn.
constexpr const char* to_say(const char* english) {
  return english;
}

/// fmt::format, by the form that the table in use has of the text.
template <class... Arguments>
std::string say(fmt::format_string<Arguments...> english, Arguments&&... arguments) {
  const fmt::string_view form = english;
  const std::string_view said = said_view({form.data(), form.size()});
  return fmt::vformat(fmt::string_view(said.data(), said.size()), fmt::make_format_args(arguments...));
}

}  // namespace headscope
