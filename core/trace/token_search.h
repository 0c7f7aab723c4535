#pragma once
// Where a text stands among tokens.

#include <span>
#include <string_view>
#include <vector>

#include "core/trace/trace.h"

namespace headscope {

/// The tokens in which an occurrence of `wanted` begins, ascending, each once: it may go on over several tokens. What
/// tokens stand for is searched, one after another, and of special tokens the name; ASCII letters match in either case.
/// Nothing matches an empty text.
std::vector<Index> find_tokens(std::span<const Token> tokens, std::string_view wanted);

}  // namespace headscope
