#pragma once
// Text before it is placed: making any bytes printable, cutting to a width, breaking into lines.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "viz/scene/text_measure.h"

namespace headscope {

/// Valid UTF-8 in which nothing is invisible or can disturb its surroundings: bytes that are no UTF-8 become U+FFFD,
/// control and format characters (bidirectional overrides, zero-width spaces, line breaks …) become their picture or
/// their number, "␊", "<U+202E>". Joiners inside emoji and scripts stay. The result has at most `limit` bytes and ends
/// at a character.
std::string printable(std::string_view bytes, std::size_t limit = 1000);

/// Where the character that begins at `begin` < text.size() ends: a character as people count them (a grapheme cluster:
/// a letter with its marks, a family of emoji). Bytes that are no UTF-8 are characters of their own.
std::size_t character_end(std::string_view text, std::size_t begin);
/// Where the character before `end` > 0 begins.
std::size_t character_begin(std::string_view text, std::size_t end);
/// What Backspace takes away before `end` > 0 begins here: the last mark of a letter alone, else the character.
std::size_t backspace_begin(std::string_view text, std::size_t end);

/// The text itself when it is no wider than `width`, else its longest beginning (whole characters as people count them)
/// with "…".
std::string elided(std::string_view text, const Font& font, double width, const TextMeasure& measure);

/// Lines no wider than `width`, broken at spaces; a word that is wider by itself is elided.
std::vector<std::string> wrapped(std::string_view text, const Font& font, double width, const TextMeasure& measure);

/// Every how many steps of `step` pixels a label is written: 1, 2, 5, 10, 20, 50 …, the smallest with at least `need`
/// pixels between labels.
std::ptrdiff_t round_every(double step, double need);

/// Distance from the middle of capitals and digits down to the baseline, so that a line looks centred on a height.
/// Both faces have capitals of 0.73 em.
inline double half_capital(const Font& font) {
  return 0.365 * font.size;
}

}  // namespace headscope
