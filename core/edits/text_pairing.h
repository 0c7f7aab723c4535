#pragma once
// Which position of another text stands for a position of this one.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headscope {

class EditWords;

struct TextPairing {
  enum class By { start, end, tokens, hand } by;
  /// By hand: position here, position there, each at most once; from 0.
  std::vector<std::pair<int, int>> pairs;
  // Not explicit: most pairings are a word.
  TextPairing(By how = By::start, std::vector<std::pair<int, int>> by_hand = {}) : by(how), pairs(std::move(by_hand)) {}
  bool operator==(const TextPairing&) const = default;
};

/// "start", "end", "tokens" (as a difference of the two texts pairs them), or pairs, "0:0,3:4"; "none" is no pair.
/// Throws Error at `where`.
std::string text_of(const TextPairing& pairing);
TextPairing parse_pairing(std::string_view word, const std::string& where);
/// Throws Error at `where` when a pair made by hand is below 0 or names a position twice.
void check(const TextPairing& pairing, const std::string& where);

/// As the end of an edit's words: " aligned tokens", nothing for the usual.
std::string aligned_words(const TextPairing& pairing);
TextPairing read_aligned(EditWords& words);

/// For every position of a text the one of `other` that stands for it, or −1. Throws Error when a pair made by hand
/// lies outside the texts.
std::vector<int> align_positions(const TextPairing& pairing, const std::vector<std::int32_t>& ids,
                                 const std::vector<std::int32_t>& other);

}  // namespace headscope
