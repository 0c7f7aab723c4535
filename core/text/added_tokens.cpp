#include "core/text/added_tokens.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/utf8.h"

namespace headscope {

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    std::int32_t node = 0;
    for (const char byte : tokens_[i].content) {
      std::int32_t next = child(node, byte);
      if (next < 0) {
        next = static_cast<std::int32_t>(nodes_.size());
        nth(nodes_, node).children.emplace_back(static_cast<unsigned char>(byte), next);
        nodes_.emplace_back();
      }
      node = next;
    }
    if (node != 0 && nth(nodes_, node).token < 0) nth(nodes_, node).token = static_cast<std::int32_t>(i);
  }
}

std::int32_t AddedTokenFinder::child(std::int32_t node, char byte) const {
  for (const auto& [label, next] : nth(nodes_, node).children)
    if (label == static_cast<unsigned char>(byte)) return next;
  return -1;
}

std::optional<std::size_t> AddedTokenFinder::longest_at(std::string_view text, std::size_t at) const {
  std::optional<std::size_t> best;
  for (std::int32_t node = 0; at < text.size(); ++at) {
    node = child(node, text[at]);
    if (node < 0) break;
    const std::int32_t token = nth(nodes_, node).token;
    if (token >= 0) best = static_cast<std::size_t>(token);
  }
  return best;
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::find(std::string_view text, std::size_t from,
                                                              bool with_special, const std::stop_token& stop,
                                                              std::size_t taken) const {
  constexpr std::size_t between_looks = 1 << 16;
  if (tokens_.empty()) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (at % between_looks == 0 && stop.stop_requested()) throw Cancelled();
    const auto found = longest_at(text, at);
    if (!found) continue;
    const AddedToken& token = tokens_[*found];
    Match match{at, at + token.content.size(), token.id, at + token.content.size()};
    if (token.special && !with_special) {
      at = match.end - 1;
      continue;
    }
    if (token.single_word) {
      const bool touched_left = at > 0 && is_word(code_point_at(text, previous_code_point(text, at)).value);
      const bool touched_right = match.end < text.size() && is_word(code_point_at(text, match.end).value);
      if (touched_left || touched_right) {
        at = match.end - 1;
        continue;
      }
    }
    while (token.lstrip && match.begin > taken) {
      const std::size_t before = previous_code_point(text, match.begin);
      if (before < taken || !is_white_space(code_point_at(text, before).value)) break;
      match.begin = before;
    }
    // A match in what an earlier token stripped: one that strips begins behind it, and may have nothing left.
    if (token.lstrip) match.begin = std::max(match.begin, taken);
    while (token.rstrip && match.end < text.size()) {
      const CodePoint after = code_point_at(text, match.end);
      if (!is_white_space(after.value)) break;
      match.end += static_cast<std::size_t>(after.length);
    }
    if (token.lstrip && match.begin >= match.end) {
      at = match.content_end - 1;
      continue;
    }
    return match;
  }
  return std::nullopt;
}

}  // namespace headscope
