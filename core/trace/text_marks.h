#pragma once
// What a text says of its tokens, whatever the model: which repeat, which belong together, where sentences end. Made
// once per text; every metric takes it.

#include "core/trace/token_links.h"
#include "core/trace/word_links.h"

namespace headscope {

struct TextMarks {
  TokenLinks links;
  WordLinks words;

  /// Linear in the number of tokens, in time and in memory.
  static TextMarks of(std::span<const Token> tokens) { return {TokenLinks::of(tokens), word_links(tokens)}; }
  /// Of numbers alone, which are no words.
  static TextMarks of(std::span<const std::int32_t> tokens) { return {TokenLinks::of(tokens), {}}; }
};

}  // namespace headscope
