#pragma once
// What a picture looks like apart from its numbers: colours, type sizes, the maps it uses. A value; the window and the
// exporters choose one. Roles keep their colour in every theme: query blue, key red, value green, one accent for
// "selected".

#include <optional>
#include <string_view>
#include <vector>

#include "viz/color/color.h"
#include "viz/color/colormap.h"
#include "viz/scene/scene.h"

namespace headscope {

struct Theme {
  std::string_view id;
  Color background;
  Color text;    ///< titles, values
  Color muted;   ///< labels, captions
  Color faint;   ///< what is there but not meant: ticks, masked labels
  Color line;    ///< frames and rules
  Color accent;  ///< selected
  Color query, key, value;
  Color masked;               ///< flat neutral, never a colour of the maps
  Color missing;              ///< NaN
  Color dark_ink, light_ink;  ///< numbers written on cells
  const Colormap* sequential = nullptr;
  const Colormap* diverging = nullptr;
  double text_scale = 1;

  // Nothing is smaller than 11: where room runs out, less is written, not smaller.
  Font title() const { return {FontRole::ui, 17 * text_scale, 600}; }
  Font body() const { return {FontRole::ui, 12 * text_scale, 400}; }
  Font caption() const { return {FontRole::ui, 11 * text_scale, 400}; }
  Font badge() const { return {FontRole::ui, 11.5 * text_scale, 500}; }
  Font token() const { return {FontRole::mono, 11.5 * text_scale, 400}; }
  Font small_token() const { return {FontRole::mono, 11 * text_scale, 400}; }
  Font number() const { return {FontRole::mono, 11 * text_scale, 400}; }
};

/// "dark", "light", "projector" (large, strong), "print" (white paper, thin lines).
const std::vector<Theme>& themes();
/// Throws Error listing the known ids.
const Theme& theme(std::string_view id);

}  // namespace headscope
