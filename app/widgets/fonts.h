#pragma once
// Type for the window: glyphs of any size, of any script that a font on the machine has, made when they are first
// shown.
//
// The fonts are those of the printers (viz/export/glyphs.h), and so are the glyphs: Dear ImGui's atlas asks for them
// one by one and keeps them. Dear ImGui itself sets characters one after the other from left to right; text that wants
// more (scripts that run from right to left or join, marks, emoji) is laid out before: laid_out() writes it as a row of
// stand-ins, characters that Unicode has not given away, each of which the atlas knows as a picture.
//
// A scene's Font gives the em in logical pixels; Dear ImGui wants the height of the line. Fonts knows the ratio of each
// face, so a size means the same here as in the printers.
//
// Thread rule: the UI thread. (Scenes built on the worker are measured with PangoText instead.)

#include <imgui.h>

#include <memory>
#include <string_view>
#include <vector>

#include "viz/scene/text_measure.h"

namespace headscope {

class Fonts final : public TextMeasure {
 public:
  /// Adds the faces to the current ImGui context. Throws Error when the machine has no font at all.
  Fonts();
  ~Fonts() override;

  /// Window pixels in a logical pixel. Glyphs are made for the size that is shown, so every scale is crisp.
  void set_scale(double scale);
  double scale() const;

  ImFont* face(const Font& font) const;
  /// What ImGui::PushFont and ImFont's functions want for this font: line height in window pixels.
  float height(const Font& font) const { return height(font, 1); }
  /// The same with the picture enlarged `zoom` times.
  float height(const Font& font, double zoom) const;
  /// Baseline below the top of the line that ImGui draws at that height, window pixels.
  float ascent(const Font& font, double zoom = 1) const;

  /// Logical pixels. Tabs and line breaks count as spaces do.
  TextBox measure(std::string_view text, const Font& font) const override;

  /// The text as Dear ImGui can draw and measure it, in that font or in the present one. Valid until the frame ends,
  /// and as long as `text` is. Line by line, where it has several; `right_to_left`: which way lines run as a whole.
  std::string_view laid_out(std::string_view text, const Font& font, bool right_to_left = false) const;
  std::string_view laid_out(std::string_view text) const;

  /// A stretch of a line that is drawn as one.
  struct Part {
    std::size_t begin = 0, end = 0;  ///< bytes of the text
    float width = 0;                 ///< window pixels
    bool right_to_left = false;
  };
  /// One line from left to right. `right_to_left`: which way it runs as a whole.
  std::vector<Part> parts(std::string_view line, const Font& font, bool right_to_left) const;

  /// Before every frame: forgets layouts when there are too many.
  void begin_frame();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headscope
