#pragma once
// The words of the window, one table per language (assets/words/*.json). The code says them in English, which stands in
// every table on the left. Four marks tell a text that people read from one that programs read, and by them
// tests/words_test.cpp knows what a table has to hold: said("…"), say("… {}", …), to_say("…"), say_later("… {}", …).
// Thread rule: any thread. Tables live as long as the process, so that what was said stays valid.

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
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

/// From now on texts are said by this table, of that language; those that were composed before stay as they are. What
/// keeps texts keeps them as Worded, or composes them anew when words_generation() is another.
void use_words(WordTable table, std::string language = "");
/// The language of the table in use, "" = none is.
std::string language_of_words();
/// Another number after every use_words().
std::uint64_t words_generation();

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

/// A text that is kept: said by the table in use whenever it is asked for, of the values that it was given once.
class Worded {
 public:
  Worded() = default;
  /// to_say("…")
  Worded(const char* english) : Worded(entry(english)) {}
  /// The same in every language: a name, a number, a token.
  Worded(std::string text);
  /// What stands in the tables under this text, of data: the title of a head class.
  static Worded entry(std::string english);
  static Worded made_by(std::function<std::string()> make);

  std::string text() const { return make_ ? (*make_)() : ""; }
  operator std::string() const { return text(); }
  bool empty() const { return !make_; }
  Worded& operator+=(const Worded& behind);
  friend Worded operator+(Worded front, const Worded& behind) { return front += behind; }
  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const Worded& worded, const Text& text) {
    return worded.text() == std::string_view(text);
  }
  friend bool operator==(const Worded& a, const Worded& b) { return a.make_ == b.make_ || a.text() == b.text(); }

 private:
  std::shared_ptr<const std::function<std::string()>> make_;  // null = ""
};

template <class Value>
auto kept_to_say(const Value& value) {
  if constexpr (std::is_convertible_v<const Value&, const char*>)
    return Worded(static_cast<const char*>(value));
  else if constexpr (std::is_convertible_v<const Value&, std::string_view>)
    return std::string(std::string_view(value));
  else
    return value;
}

/// say() of what is kept. Values that are constants, to_say("…"), are said with it.
template <class... Arguments>
Worded say_later(fmt::format_string<Arguments...> english, Arguments&&... arguments) {
  const fmt::string_view form = english;
  return Worded::made_by(
      [english = std::string(form.data(), form.size()), values = std::make_tuple(kept_to_say(arguments)...)] {
        return std::apply(
            [&](const auto&... value) {
              const std::string_view said = said_view(english);
              return fmt::vformat(fmt::string_view(said.data(), said.size()), fmt::make_format_args(value...));
            },
            values);
      });
}

}  // namespace headscope

template <>
struct fmt::formatter<headscope::Worded> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const headscope::Worded& worded, Context& context) const {
    return fmt::formatter<std::string>::format(worded.text(), context);
  }
};
