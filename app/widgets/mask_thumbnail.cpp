#include "app/widgets/mask_thumbnail.h"

#include <cmath>

#include "app/widgets/keyboard.h"
#include "app/widgets/text_draw.h"
#include "viz/scene/text.h"

namespace headscope {

ThumbnailTouch mask_thumbnail(const Ui& ui, const char* id, const AttentionRule& rule, std::string_view name,
                              bool chosen, double side, Index cells) {
  ThumbnailTouch touch;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float cell = std::floor(ui.px(side) / static_cast<float>(cells)), extent = cell * static_cast<float>(cells);
  const Font font = ui.small();
  touch.clicked = pressable(id, {extent, extent + ui.px(font.size + 5)});
  touch.hovered = ImGui::IsItemHovered();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const Color seen = chosen ? ui.theme.accent : touch.hovered ? ui.theme.text : ui.theme.muted;
  for (Index q = 0; q < cells; ++q)
    for (Index k = 0; k < cells; ++k) {
      const ImVec2 from{at.x + cell * static_cast<float>(k), at.y + cell * static_cast<float>(q)};
      draw.AddRectFilled(from, {from.x + cell - 1, from.y + cell - 1},
                         col(masked(rule, q, k, cells) ? ui.theme.masked : seen));
    }
  draw_text(ui, draw,
            {{0, 0},
             elided(name, font, side + 16, ui.fonts),
             font,
             chosen ? ui.theme.text : ui.theme.muted,
             Anchor::start,
             0},
            {at.x, at.y + extent + ui.px(font.size + 2)});
  return touch;
}

}  // namespace headscope
