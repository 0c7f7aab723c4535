#pragma once
// Text through Pango: any script that a font on the machine can show, measured and drawn by the same layout,
// independent of the scale (no hinting of widths), so what the builder was told is what is painted.

#include <memory>

#include "core/base/error.h"
#include "viz/scene/text_measure.h"

using cairo_t = struct _cairo;

namespace headscope {

/// Holds its own Pango context. One thread at a time per object; any number of objects.
class PangoText final : public TextMeasure {
 public:
  PangoText();
  ~PangoText() override;
  TextBox measure(std::string_view text, const Font& font) const override;
  /// Draws in the current user space of `cairo`.
  void draw(cairo_t* cairo, const Text& text) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// No text can be drawn on this machine, and what to install.
Error no_fonts();
/// Throws no_fonts() where that is so: Pango would draw a box for every letter, and tell nobody.
void expect_fonts();
/// "Inter, …, sans-serif" as CSS writes it: what the SVG names, in the order in which Pango looks.
const char* font_families(FontRole role);

}  // namespace headscope
