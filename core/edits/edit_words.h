#pragma once
// The words of one edit, taken one after another, and what writes such words.

#include <string>
#include <string_view>

#include "core/base/named_values.h"

namespace headscope {

class EditWords {
 public:
  /// `form`: what an Error at `where` says was expected. Both are kept by reference.
  EditWords(std::string_view text, const std::string& where, std::string_view form)
      : rest_(text), where_(where), form_(form) {}

  [[noreturn]] void fail(std::string_view found) const;
  const std::string& where() const { return where_; }
  bool empty();
  std::string_view next();
  /// Whether these words come next; then they are taken.
  bool take(std::string_view words);
  /// int, std::uint64_t, float or double; `number_in` reads it off a word that was taken already.
  template <class Number>
  Number number_in(std::string_view word) const;
  template <class Number>
  Number number() {
    return number_in<Number>(next());
  }
  /// A JSON string, so that a text of any characters can stand in one line.
  std::string quoted();
  std::string_view all();
  template <class Value, std::size_t n>
  Value one_of(const NamedValue<Value> (&names)[n]) {
    const std::string_view word = next();
    const auto value = value_in(names, word);
    if (!value) fail(word);
    return *value;
  }
  /// Throws unless all was taken.
  void end();

 private:
  void skip();

  std::string_view rest_;
  const std::string& where_;
  std::string_view form_;
};

/// The text in quotes, as quoted() reads it.
std::string quote(const std::string& text);

/// Throws Error at `where` unless it holds.
void need(bool holds, const std::string& where, std::string_view expected, std::string_view found);

}  // namespace headscope
