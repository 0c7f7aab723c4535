#include "core/trace/token_links.h"

#include <unordered_map>

#include "core/base/nth.h"

namespace headscope {

TokenLinks TokenLinks::of(std::span<const std::int32_t> tokens) {
  // Number the distinct tokens and count, so that each one's positions get a stretch of their own in `keys`.
  std::unordered_map<std::int32_t, std::size_t> numbers;
  std::vector<std::size_t> number(tokens.size());
  std::vector<std::int32_t> counts;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    number[i] = numbers.try_emplace(tokens[i], counts.size()).first->second;
    if (number[i] == counts.size()) counts.push_back(0);
    ++counts[number[i]];
  }
  std::vector<std::int32_t> first(counts.size());
  for (std::size_t t = 1; t < counts.size(); ++t) first[t] = first[t - 1] + counts[t - 1];

  TokenLinks links;
  List& list = links.duplicate;
  list.keys.resize(tokens.size());
  list.begin.resize(tokens.size());
  list.count.resize(tokens.size());
  std::vector<std::int32_t> seen(counts.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t t = number[i];
    list.begin[i] = first[t];
    list.count[i] = seen[t];
    nth(list.keys, first[t] + seen[t]) = static_cast<std::int32_t>(i);
    ++seen[t];
  }
  links.induction = list;
  for (std::int32_t& key : links.induction.keys) ++key;  // the position right after
  return links;
}

}  // namespace headscope
