#pragma once
// Tokens that are looked for in the text as they stand, before any splitting or merging: special tokens such as
// "<|endoftext|>", and words that were added to a vocabulary later.

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool special = false;      ///< found only when the caller asks for special tokens; stands for no text
  bool single_word = false;  ///< only where no word character touches it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< and the white space after it
  bool normalized = false;   ///< looked for in the normalised text
};

/// Finds added tokens in a text, leftmost first and longest first. Immutable.
class AddedTokenFinder {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;  ///< with the white space it takes along
    std::int32_t id = 0;
    std::size_t content_end = 0;  ///< where to look for the next one: white space taken along may hold another
  };
  AddedTokenFinder() = default;
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  /// The first match whose content begins at `from` or later, or nullopt; it takes no white space before `taken`. What
  /// is no match after all (a special token where those are text, a part of a word) hides what overlaps with it, as in
  /// the tokenizers library. Throws Cancelled when `stop` is requested.
  std::optional<Match> find(std::string_view text, std::size_t from, bool with_special,
                            const std::stop_token& stop = {}, std::size_t taken = 0) const;
  bool empty() const { return tokens_.empty(); }

 private:
  // A trie: one node per distinct beginning of a token.
  struct Node {
    std::vector<std::pair<unsigned char, std::int32_t>> children;
    std::int32_t token = -1;
  };
  std::int32_t child(std::int32_t node, char byte) const;
  std::optional<std::size_t> longest_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
};

}  // namespace headscope
