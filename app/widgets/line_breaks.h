#pragma once

#include <string_view>
#include <vector>

namespace headscope {

/// The parts of a word, which holds no space, between which a line may end: beside characters of scripts that are
/// written without spaces, but neither before what closes (。，」) nor behind what
/// opens (「), nor at an asterisk, which marks emphasis.
std::vector<std::string_view> breakable_parts(std::string_view word);
/// Whether the letters of a text may be drawn one by one, from left to right: not of scripts that join letters, reorder
/// them, put marks on them or run from right to left (Arabic, Hebrew, Devanagari, Thai …).
bool letters_stand_alone(std::string_view text);

}  // namespace headscope
