#include "core/trace/token_search.h"

#include <algorithm>
#include <string>

namespace headscope {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::vector<Index> find_tokens(std::span<const Token> tokens, std::string_view wanted) {
  std::vector<Index> found;
  if (wanted.empty()) return found;
  std::string text, sought(wanted);
  std::vector<std::size_t> ends;
  for (const Token& token : tokens) {
    text += token.bytes.empty() ? token.label : token.bytes;
    ends.push_back(text.size());
  }
  std::ranges::transform(text, text.begin(), lower);
  std::ranges::transform(sought, sought.begin(), lower);
  for (std::size_t at = text.find(sought); at != std::string::npos; at = text.find(sought, at + 1)) {
    const Index token = std::ranges::upper_bound(ends, at) - ends.begin();
    if (found.empty() || found.back() != token) found.push_back(token);
  }
  return found;
}

}  // namespace headscope
