#pragma once
// Text from outside (names in files, broken lines, other programs' messages) as it may be shown to a person.

#include <cstddef>
#include <string>
#include <string_view>

namespace headscope {

inline constexpr std::size_t longest_excerpt = 200;

enum class Lines { spelled_out, kept };

/// At most `most` characters of `text`, "…" for the rest. Control characters (an escape sequence would command the
/// terminal), characters that turn the direction of writing, and bytes that are not UTF-8 are spelled out: <1B>,
/// <U+202E>. Line breaks too, unless they are `kept`.
std::string excerpt(std::string_view text, std::size_t most = longest_excerpt, Lines lines = Lines::spelled_out);

}  // namespace headscope
