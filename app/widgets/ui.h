#pragma once
// What every widget and panel is handed to draw with: theme, type, scale, the painter of heatmaps, and the registry of
// items that tests read. Made anew for each frame by the window; hold no reference beyond the frame.
// Thread rule: the UI thread.

#include <imgui.h>

#include <string_view>

#include "app/widgets/fonts.h"
#include "app/widgets/framed.h"
#include "app/widgets/item_registry.h"
#include "app/widgets/shown_pictures.h"
#include "viz/gl/heatmap_painter.h"
#include "viz/scene/theme.h"
#include "viz/scene/token_axis.h"

namespace headscope {

/// The colours of the window around the pictures, derived from the theme.
struct Chrome {
  Color bar;       ///< top bar and side columns
  Color raised;    ///< buttons, text fields
  Color hovered;   ///< the same under the pointer
  Color selected;  ///< chosen segment: the accent, quiet enough to write on
  Color border;
};
Chrome chrome_of(const Theme& theme);
/// The hue, moved towards the text's colour until it can be read on the ground (contrast 4.5).
Color legible(const Theme& theme, Color color);

struct Ui {
  const Theme& theme;
  Chrome chrome;
  Fonts& fonts;
  HeatmapPainter* heatmaps;  ///< nullptr where nobody looks: pictures take their place and are not drawn
  float scale;               ///< window pixels in a logical pixel
  ItemRegistry* items;       ///< nullptr unless somebody asks what is on screen
  bool* animate;             ///< set to ask for another frame right away
  ShownPictures& pictures;
  Framed& framed;

  /// Logical to window pixels, whole ones, so that edges are sharp.
  float px(double logical) const;
  Style style() const { return {theme, fonts}; }
  // Type of the window: a step larger than in pictures, which are also printed.
  Font body() const { return {FontRole::ui, 13 * theme.text_scale, 400}; }
  Font strong() const { return {FontRole::ui, 13 * theme.text_scale, 600}; }
  Font heading() const { return {FontRole::ui, 17 * theme.text_scale, 600}; }
  Font small() const { return {FontRole::ui, 11 * theme.text_scale, 400}; }
  Font token() const { return {FontRole::mono, 12.5 * theme.text_scale, 400}; }
  Font number() const { return {FontRole::mono, 12 * theme.text_scale, 400}; }
  /// Names what a widget drew by hand; Dear ImGui's own items name themselves.
  void name(std::string_view label, ImVec2 min, ImVec2 max) const {
    if (items) items->add(label, min, max);
  }
  void wrote(std::string_view text) const {
    if (items) items->wrote(text);
  }
};

inline ImU32 col(Color c) {
  return IM_COL32(c.r, c.g, c.b, c.a);
}
inline ImVec4 vec(Color c) {
  return ImGui::ColorConvertU32ToFloat4(col(c));
}

/// Pushes a scene font; pops it at the end of the block.
class UseFont {
 public:
  UseFont(const Ui& ui, const Font& font);
  ~UseFont() { ImGui::PopFont(); }
  UseFont(const UseFont&) = delete;
  UseFont& operator=(const UseFont&) = delete;
};

/// Dear ImGui's style for this theme at this scale: colours, 8 / 12 / 16 spacing, quiet corners.
void apply_style(const Theme& theme, const Fonts& fonts, float scale);

}  // namespace headscope
