#include "core/attention/described_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"

namespace headscope {

namespace {

[[noreturn]] void no_rule(std::string_view text) {
  throw Error("rule of a trace", "a mask and what was done to its scores", fmt::format("\"{}\"", excerpt(text, 120)));
}

Index whole_number(std::string_view digits) {
  Index value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) no_rule(digits);
  return value;
}

/// `base` with what the last word of its description does to it; empty where that word is none of those that rules add.
std::optional<RulePtr> changed(const RulePtr& base, std::string_view word) {
  constexpr std::string_view of_scores[] = {"soft cap ",    "learned sink ",    "temperature ",
                                            "ALiBi slope ", "times ln n / ln ", "T5 bias ",
                                            "place bias ",  "in bfloat16",      "uniform"};
  if (std::ranges::any_of(of_scores, [&](std::string_view each) { return word.starts_with(each); })) return base;
  if (constexpr std::string_view without = "without the first "; word.starts_with(without))
    return without_first(base, whole_number(word.substr(without.size())));
  const auto one_key = [&](auto of) { return one_key_rule(base, of, std::string(word)); };
  if (word == "previous token") return one_key([](Index query) { return std::max<Index>(query - 1, 0); });
  if (word == "self") return one_key([](Index query) { return query; });
  if (word == "first token") return one_key([](Index) { return Index{0}; });
  return std::nullopt;
}

/// A mask and what follows it behind commas. Masks have lists with commas of their own, without a space.
RulePtr rule_of(std::string_view text) {
  constexpr std::string_view comma = ", ";
  auto end = std::min(text.find(comma), text.size());
  RulePtr rule = parse_mask(text.substr(0, end), "rule of a trace");
  while (end < text.size()) {
    const auto begin = end + comma.size();
    end = std::min(text.find(comma, begin), text.size());
    const auto next = changed(rule, text.substr(begin, end - begin));
    if (!next) no_rule(text);
    rule = *next;
  }
  return rule;
}

}  // namespace

RulePtr parse_described_rule(std::string_view description) {
  // What distances add stands behind the rules of all rows.
  if (const auto distances = description.rfind(", disentangled "); distances != std::string_view::npos)
    description = description.substr(0, distances);
  constexpr std::string_view between = "; ", at = " at ";
  std::vector<RuleOfRows> parts;
  for (std::size_t begin = 0; begin <= description.size();) {
    const auto end = std::min(description.find(between, begin), description.size());
    const std::string_view part = description.substr(begin, end - begin);
    const auto rows = part.rfind(at), dots = part.rfind("..");
    if (rows == std::string_view::npos || dots == std::string_view::npos || dots < rows) {
      if (begin > 0 || end < description.size()) no_rule(description);
      return rule_of(part);
    }
    const Index first = whole_number(part.substr(rows + at.size(), dots - rows - at.size())),
                last = whole_number(part.substr(dots + 2));
    if (first != (parts.empty() ? 0 : parts.back().end) || last < first) no_rule(description);
    parts.push_back({last + 1, rule_of(part.substr(0, rows))});
    begin = end + between.size();
  }
  return rule_by_rows(std::move(parts));
}

}  // namespace headscope
