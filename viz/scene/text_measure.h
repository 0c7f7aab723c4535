#pragma once
// How much room a line of text takes. Builders ask before they place; viz/export answers with Pango, the window with
// its own font atlas. Both must answer for the font they will draw with.

#include <string_view>

#include "viz/scene/scene.h"

namespace headscope {

/// In logical pixels, before any rotation. `ink` is what is painted, relative to the start of the baseline.
struct TextBox {
  double width = 0;    ///< advance
  double ascent = 0;   ///< baseline to the top of the line box
  double descent = 0;  ///< baseline to the bottom of the line box
  Rect ink;
};

class TextMeasure {
 public:
  virtual ~TextMeasure() = default;
  virtual TextBox measure(std::string_view text, const Font& font) const = 0;
  double width(std::string_view text, const Font& font) const { return measure(text, font).width; }
};

}  // namespace headscope
