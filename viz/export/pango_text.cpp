#include "viz/export/pango_text.h"

#include <atomic>
#include <numbers>

#include "viz/export/pango_layout.h"

namespace headscope {

struct PangoText::State {
  PangoLines lines{CAIRO_HINT_STYLE_NONE};
};

Error no_fonts() {
  return {"fonts", "a scalable font that fontconfig knows", "none",
          "install fonts-inter and fonts-jetbrains-mono, or fonts-dejavu-core"};
}

void expect_fonts() {
  static std::atomic<bool> known{false};
  if (known) return;
  const auto [ascent, descent] = PangoLines(CAIRO_HINT_STYLE_NONE).metrics({FontRole::ui, 64, 400});
  if (!(ascent + descent > 0)) throw no_fonts();
  known = true;
}

PangoText::PangoText() : state_(std::make_unique<State>()) {}
PangoText::~PangoText() = default;

TextBox PangoText::measure(std::string_view text, const Font& font) const {
  const Ref<PangoLayout> layout = state_->lines.line(text, font);
  PangoRectangle ink, logical;
  pango_layout_get_extents(layout.get(), &ink, &logical);
  const double unit = pango_unit, baseline = pango_layout_get_baseline(layout.get()) * unit;
  TextBox box;
  box.width = logical.width * unit;
  box.ascent = baseline - logical.y * unit;
  box.descent = (logical.y + logical.height) * unit - baseline;
  box.ink = {(ink.x - logical.x) * unit, ink.y * unit - baseline, ink.width * unit, ink.height * unit};
  return box;
}

void PangoText::draw(cairo_t* cairo, const Text& text) const {
  const Ref<PangoLayout> layout = state_->lines.line(text.text, text.font);
  PangoRectangle logical;
  pango_layout_get_extents(layout.get(), nullptr, &logical);
  const double unit = pango_unit, width = logical.width * unit;
  const double share = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? 0.5 : 1;
  cairo_save(cairo);
  cairo_translate(cairo, text.at.x, text.at.y);
  cairo_rotate(cairo, text.degrees * std::numbers::pi / 180);
  cairo_move_to(cairo, -share * width - logical.x * unit, -pango_layout_get_baseline(layout.get()) * unit);
  cairo_set_source_rgba(cairo, text.color.r / 255.0, text.color.g / 255.0, text.color.b / 255.0, text.color.a / 255.0);
  // The context keeps its own options and resolution: measuring and drawing see the same glyph positions.
  pango_cairo_show_layout(cairo, layout.get());
  cairo_restore(cairo);
}

const char* font_families(FontRole role) {
  return role == FontRole::ui ? "Inter, Helvetica Neue, Arial, sans-serif"
                              : "JetBrains Mono, Menlo, Consolas, monospace";
}

}  // namespace headscope
