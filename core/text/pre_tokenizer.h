#pragma once
// How a text is cut into words before its model cuts those into tokens ("pre_tokenizer" in tokenizer.json). Nothing is
// ever merged across two words. The many kinds that tokenizer.json knows come down to a few steps: put a space in
// front, split by a pattern, write bytes as characters.

#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "core/text/aligned_text.h"
#include "core/text/pattern.h"

namespace headscope {

/// Puts `prefix` in front of every word that does not begin with it (ByteLevel's add_prefix_space, Metaspace).
struct PrefixStep {
  enum class Scheme { always, first, never };
  std::string prefix;
  Scheme scheme = Scheme::always;  ///< first: only the word at the very start of the original text
  bool replace_spaces = false;     ///< writes `prefix` for every space as well
};

struct SplitStep {
  enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
  Pattern pattern;
  Behavior behavior = Behavior::isolated;  ///< what becomes of a match
  bool invert = false;                     ///< what lies between matches counts as the match
};

/// Writes each byte as the character of GPT-2's alphabet that stands for it: ByteLevel, where other steps follow it.
struct ByteAlphabetStep {};

using PreTokenizerStep = std::variant<PrefixStep, SplitStep, ByteAlphabetStep>;

struct Words {
  AlignedText text;
  std::vector<ByteRange> ranges;  ///< ascending, not empty, not overlapping
};

/// Applies the steps in order to `text`, which is one word at first. Throws as normalize() does.
Words split_into_words(const std::vector<PreTokenizerStep>& steps, AlignedText text, const std::stop_token& stop = {});

}  // namespace headscope
