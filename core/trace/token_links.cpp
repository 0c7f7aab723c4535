#include "core/trace/token_links.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/base/nth.h"
#include "core/base/utf8.h"
#include "core/trace/trace.h"

namespace headscope {

namespace {
constexpr std::string_view separator_names[] = {"[SEP]",         "</s>",       "<sep>",      "<eos>",
                                                "<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>",
                                                "<end_of_turn>", "<|end|>",    "<|return|>"};
/// What tokenizers write for the space before a word, or for none (WordPiece).
constexpr std::string_view word_marks[] = {" ", "␣", "▁", "Ġ", "##"};
}  // namespace

bool is_separator(const Token& token) {
  return std::ranges::find(separator_names, std::string_view(token.label)) != std::end(separator_names);
}

bool is_punctuation(const Token& token) {
  std::string_view text = token.bytes.empty() ? token.label : token.bytes;
  for (const std::string_view mark : word_marks)
    if (text.size() > mark.size() && text.starts_with(mark)) {
      text.remove_prefix(mark.size());
      break;
    }
  for (std::size_t at = 0; at < text.size();) {
    const auto character = valid_code_point_at(text, at);
    if (!character || !is_punctuation(character->value)) return false;
    at += static_cast<std::size_t>(character->length);
  }
  return !text.empty();
}

TokenLinks TokenLinks::of(std::span<const Token> tokens) {
  std::vector<std::int32_t> ids;
  ids.reserve(tokens.size());
  for (const Token& token : tokens) ids.push_back(token.id);
  TokenLinks links = of(ids);
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    if (is_separator(tokens[at])) links.separators.push_back(static_cast<std::int32_t>(at));
    if (is_punctuation(tokens[at])) links.punctuation.push_back(static_cast<std::int32_t>(at));
  }
  return links;
}

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
