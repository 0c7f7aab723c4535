#include "core/edits/head_target.h"

#include <fmt/format.h>

#include <charconv>

#include "core/base/error.h"

namespace headscope {

namespace {
std::optional<int> integer(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A layer or head by its number; nullopt for "*".
std::optional<int> place_of(std::string_view text, std::string_view whole, const std::string& where) {
  if (text == "*") return std::nullopt;
  const auto value = integer(text);
  if (!value || *value < 0)
    throw Error(where, "a head such as 1.0, a layer such as 1.*, or * for all", fmt::format("\"{}\"", whole));
  return value;
}

PositionRange positions_of(std::string_view text, const std::string& where) {
  const auto dots = text.find("..");
  const auto first = integer(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first
                    : dots + 2 == text.size()      ? std::optional<int>(-1)
                                                   : integer(text.substr(dots + 2));
  if (!first || !last)
    throw Error(where, "positions such as 3, 3..7, 3.. or -1 (the last)", fmt::format("\"{}\"", text));
  return {*first, *last};
}
}  // namespace

std::string text_of(const HeadTarget& target) {
  const auto part = [](const std::optional<int>& value) { return value ? std::to_string(*value) : "*"; };
  std::string text(name_in(stack_names, target.stack));
  if (!text.empty()) text += ".";
  text += !target.layer && !target.head ? "*" : part(target.layer) + "." + part(target.head);
  if (const auto& at = target.positions)
    text += at->first == at->last ? fmt::format("@{}", at->first)
            : at->last == -1      ? fmt::format("@{}..", at->first)
                                  : fmt::format("@{}..{}", at->first, at->last);
  return text;
}

HeadTarget parse_head_target(std::string_view text, const std::string& where) {
  HeadTarget target;
  if (const auto at = text.find('@'); at != std::string_view::npos) {
    target.positions = positions_of(text.substr(at + 1), where);
    text = text.substr(0, at);
  }
  for (const auto& [name, stack] : stack_names)
    if (stack != Stack::only && text.starts_with(name) && text.substr(name.size()).starts_with(".")) {
      target.stack = stack;
      text.remove_prefix(name.size() + 1);
      break;
    }
  const auto dot = text.find('.');
  target.layer = place_of(text.substr(0, dot), text, where);
  if (dot != std::string_view::npos) target.head = place_of(text.substr(dot + 1), text, where);
  return target;
}

}  // namespace headscope
