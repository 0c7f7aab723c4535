#pragma once
// Type for the window: faces found through fontconfig, glyphs of any size made when they are first shown, and other
// scripts' fonts merged in when a text needs them.
//
// A scene's Font gives the em in logical pixels; Dear ImGui wants the height of the line. Fonts knows the ratio of each
// face, so a size means the same here as in the printers.
//
// Thread rule: the UI thread. (Scenes built on the worker are measured with PangoText instead.)

#include <imgui.h>

#include <memory>
#include <string_view>

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

  /// Says that `text` will be shown. Glyphs that no face has are looked for on the machine before the next frame.
  void need(std::string_view text) const;
  /// Between frames: merges fonts for what was needed and missing. True when something new can be shown.
  bool merge_missing();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headscope
