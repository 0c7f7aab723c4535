#include "app/widgets/text_draw.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numbers>

namespace headscope {

void draw_text(const Ui& ui, ImDrawList& draw, const Text& text, ImVec2 origin, double zoom) {
  if (text.text.empty() || text.color.a == 0) return;
  ImFont* font = ui.fonts.face(text.font);
  const float height = ui.fonts.height(text.font, zoom);
  if (height < 2) return;  // too small to be more than a smear
  ui.wrote(text.text);
  const std::string_view shown = ui.fonts.laid_out(text.text, text.font);
  const char *begin = shown.data(), *end = begin + shown.size();
  const float factor = ui.scale * static_cast<float>(zoom);
  const ImVec2 at{origin.x + static_cast<float>(text.at.x) * factor, origin.y + static_cast<float>(text.at.y) * factor};
  float shift = 0;
  if (text.anchor != Anchor::start) {
    const float width = font->CalcTextSizeA(height, FLT_MAX, 0, begin, end).x;
    shift = text.anchor == Anchor::middle ? width / 2 : width;
  }
  const float ascent = ui.fonts.ascent(text.font, zoom);
  // RenderText() drops what lies outside the rectangle it is given, before we turn it; the draw list's own clipping
  // still holds.
  const ImVec4 anywhere{-FLT_MAX, -FLT_MAX, FLT_MAX, FLT_MAX};
  if (text.degrees == 0) {
    font->RenderText(&draw, height, {at.x - shift, at.y - ascent}, col(text.color), anywhere, begin, end);
    return;
  }
  // Set at whole pixels far from any edge, then turned about its anchor and moved into place.
  const ImVec2 start{std::floor(at.x), std::floor(at.y - ascent)};
  const int first = draw.VtxBuffer.Size;
  font->RenderText(&draw, height, start, col(text.color), anywhere, begin, end);
  const ImVec2 pivot{start.x + shift, start.y + ascent};
  const double angle = text.degrees * std::numbers::pi / 180;
  const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
  for (int i = first; i < draw.VtxBuffer.Size; ++i) {
    ImVec2& p = draw.VtxBuffer[i].pos;
    const float x = p.x - pivot.x, y = p.y - pivot.y;
    p = {at.x + x * c - y * s, at.y + x * s + y * c};
  }
}

}  // namespace headscope
