#include "viz/export/pango_text.h"

#include <pango/pangocairo.h>

#include <numbers>
#include <string>

namespace headscope {

namespace {

struct Unref {
  void operator()(void* object) const { g_object_unref(object); }
};
template <class T>
using Ref = std::unique_ptr<T, Unref>;

// Tabular digits keep numbers in line; "calt" would join "->" or "!=" of a token into one sign that the text does not
// hold.
constexpr const char* features = "tnum, calt 0, liga 0, dlig 0";

}  // namespace

struct PangoText::State {
  Ref<PangoFontMap> fonts;
  Ref<PangoContext> context;

  State() : fonts(pango_cairo_font_map_new()), context(pango_font_map_create_context(fonts.get())) {
    cairo_font_options_t* options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);  // colour fringes have no place in a file
    pango_cairo_context_set_font_options(context.get(), options);
    cairo_font_options_destroy(options);
    pango_cairo_context_set_resolution(context.get(), 96);
    pango_context_set_round_glyph_positions(context.get(), FALSE);
    // Lines run from left to right, as in the SVG; the words within run as their script does.
    pango_context_set_base_dir(context.get(), PANGO_DIRECTION_LTR);
    pango_context_set_language(context.get(), pango_language_from_string("en"));
  }

  Ref<PangoLayout> layout(std::string_view text, const Font& font) const {
    Ref<PangoLayout> out(pango_layout_new(context.get()));
    PangoFontDescription* description = pango_font_description_new();
    pango_font_description_set_family(description, font_families(font.role));
    pango_font_description_set_absolute_size(description, font.size * PANGO_SCALE);
    pango_font_description_set_weight(description, static_cast<PangoWeight>(font.weight));
    pango_layout_set_font_description(out.get(), description);
    pango_font_description_free(description);
    PangoAttrList* attributes = pango_attr_list_new();
    pango_attr_list_insert(attributes, pango_attr_font_features_new(features));
    pango_layout_set_attributes(out.get(), attributes);
    pango_attr_list_unref(attributes);
    pango_layout_set_single_paragraph_mode(out.get(), TRUE);
    pango_layout_set_auto_dir(out.get(),
                              FALSE);  // lines run left to right, as in the SVG; the words within as they should
    pango_layout_set_text(out.get(), text.data(), static_cast<int>(text.size()));
    return out;
  }
};

PangoText::PangoText() : state_(std::make_unique<State>()) {}
PangoText::~PangoText() = default;

TextBox PangoText::measure(std::string_view text, const Font& font) const {
  const Ref<PangoLayout> layout = state_->layout(text, font);
  PangoRectangle ink, logical;
  pango_layout_get_extents(layout.get(), &ink, &logical);
  const double unit = 1.0 / PANGO_SCALE, baseline = pango_layout_get_baseline(layout.get()) * unit;
  TextBox box;
  box.width = logical.width * unit;
  box.ascent = baseline - logical.y * unit;
  box.descent = (logical.y + logical.height) * unit - baseline;
  box.ink = {(ink.x - logical.x) * unit, ink.y * unit - baseline, ink.width * unit, ink.height * unit};
  return box;
}

void PangoText::draw(cairo_t* cairo, const Text& text) const {
  const Ref<PangoLayout> layout = state_->layout(text.text, text.font);
  PangoRectangle logical;
  pango_layout_get_extents(layout.get(), nullptr, &logical);
  const double unit = 1.0 / PANGO_SCALE, width = logical.width * unit;
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
