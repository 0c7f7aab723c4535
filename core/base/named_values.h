#pragma once
// The words of an enumeration: one table says how each value is written and read.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace headscope {

template <class Value>
using NamedValue = std::pair<std::string_view, Value>;

/// "?" for a value that the table does not have.
template <class Value, std::size_t n>
constexpr std::string_view name_in(const NamedValue<Value> (&names)[n], Value value) {
  for (const auto& [name, each] : names)
    if (each == value) return name;
  return "?";
}

template <class Value, std::size_t n>
constexpr std::optional<Value> value_in(const NamedValue<Value> (&names)[n], std::string_view name) {
  for (const auto& [each, value] : names)
    if (each == name) return value;
  return std::nullopt;
}

/// "dense, factored, none"
template <class Value, std::size_t n>
std::string listed(const NamedValue<Value> (&names)[n]) {
  std::string text;
  for (const auto& [name, value] : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

}  // namespace headscope
