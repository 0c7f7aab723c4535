#pragma once
// Text as glyphs, for a painter that sets them one by one from left to right (the window's). Pango lays the line out:
// it chooses a font for every character that some font on the machine has, turns scripts that run from right to left,
// joins letters that join, puts marks in their places. What no font has becomes a box with the character's number.
//
// Lengths are in em: a line is laid out once for all sizes, and image() draws its glyphs at any.
//
// Thread rule: one thread at a time per object; any number of objects.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "viz/scene/scene.h"

namespace headscope {

/// What stands for a stretch of text that is drawn as one: a letter with its marks, letters that became one sign.
struct Cluster {
  int glyph = 0;                   ///< for Glyphs; the same picture and advance have the same number
  std::size_t begin = 0, end = 0;  ///< its bytes in the text
  bool right_to_left = false;
};

/// Straight (not premultiplied) RGBA. A glyph without colours of its own is white, and its alpha is the ink.
struct GlyphImage {
  int left = 0, top = 0;  ///< of the picture's corner from the start of the baseline, pixels, y down
  int width = 0, height = 0;
  bool colored = false;
  std::vector<std::uint8_t> rgba;
};

class Glyphs {
 public:
  Glyphs();
  ~Glyphs();

  /// The clusters of one line from left to right. `right_to_left`: which way the line runs as a whole. font.size is of
  /// no account.
  std::vector<Cluster> line(std::string_view text, const Font& font, bool right_to_left = false);
  /// From a cluster to the next, em.
  double advance(int glyph) const;
  /// Draws a cluster's glyphs at `em` pixels.
  GlyphImage image(int glyph, double em) const;
  /// How many different ones there have been.
  int count() const;

  struct Metrics {
    double ascent = 0, descent = 0;  ///< of the font's own face, em
  };
  Metrics metrics(const Font& font) const;
  /// True when a font on the machine has the character.
  bool has(std::int32_t character, const Font& font);
  /// The first character of the text that none has, ASCII aside; "" = all can be drawn. Bytes that are no UTF-8 count
  /// as such.
  std::string_view lacking(std::string_view text, const Font& font);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// True for characters that stand for themselves wherever they are: alphabets without joining, Chinese, Japanese,
/// Korean, signs. Text of nothing else needs no layout: its glyphs can be set one after the other. False where the
/// glyph or its font depends on the neighbours: scripts that run from right to left or join, marks, emoji, the full
/// stop of Chinese.
bool stands_alone(std::int32_t character);
/// The same of every character. Bytes that are no UTF-8 count as characters that stand alone.
bool stands_alone(std::string_view text);

/// Whether a paragraph runs from right to left: its first letter with a direction decides.
bool runs_right_to_left(std::string_view paragraph);

}  // namespace headscope
