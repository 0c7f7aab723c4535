#pragma once
// What PangoText and Glyphs have in common: one Pango context and how a line is laid out in it. Internal to viz/export.

#include <pango/pangocairo.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/utf8.h"
#include "viz/export/pango_text.h"

namespace headscope {

struct Unref {
  void operator()(void* object) const { g_object_unref(object); }
};
template <class T>
using Ref = std::unique_ptr<T, Unref>;

/// Pango units in a pixel, as a factor.
constexpr double pango_unit = 1.0 / PANGO_SCALE;

class PangoLines {
 public:
  explicit PangoLines(cairo_hint_style_t hints) : fonts_(pango_cairo_font_map_new()) {
    context_.reset(pango_font_map_create_context(fonts_.get()));
    cairo_font_options_t* options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, hints);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);  // colour fringes have no place in a file
    pango_cairo_context_set_font_options(context_.get(), options);
    cairo_font_options_destroy(options);
    pango_cairo_context_set_resolution(context_.get(), 96);
    pango_context_set_round_glyph_positions(context_.get(), FALSE);
    pango_context_set_language(context_.get(), pango_language_from_string("en"));
  }

  /// Ascent and descent in pixels; 0 of a font that is none.
  std::pair<double, double> metrics(const Font& font) const {
    PangoFontDescription* wanted = description(font);
    const Ref<PangoFont> face(pango_context_load_font(context_.get(), wanted));
    pango_font_description_free(wanted);
    if (!face) return {};
    PangoFontMetrics* measured = pango_font_get_metrics(face.get(), nullptr);
    const std::pair out{pango_font_metrics_get_ascent(measured) * pango_unit,
                        pango_font_metrics_get_descent(measured) * pango_unit};
    pango_font_metrics_unref(measured);
    return out;
  }

  PangoContext* context() const { return context_.get(); }

  /// Which fonts are asked for; free it with pango_font_description_free.
  static PangoFontDescription* description(const Font& font) {
    PangoFontDescription* out = pango_font_description_new();
    pango_font_description_set_family(out, font_families(font.role));
    pango_font_description_set_absolute_size(out, font.size * PANGO_SCALE);
    pango_font_description_set_weight(out, static_cast<PangoWeight>(font.weight));
    return out;
  }

  /// One line. It runs from left to right as a whole, as in the SVG, unless told otherwise; the words within run as
  /// their script does.
  Ref<PangoLayout> line(std::string_view text, const Font& font, bool right_to_left = false) const {
    pango_context_set_base_dir(context_.get(), right_to_left ? PANGO_DIRECTION_RTL : PANGO_DIRECTION_LTR);
    Ref<PangoLayout> out = laid_out(text, font);
    pango_layout_set_single_paragraph_mode(out.get(), TRUE);
    pango_layout_set_auto_dir(out.get(), FALSE);
    return out;
  }

  /// Lines no wider than `width`, running as the text's own letters do.
  Ref<PangoLayout> paragraph(std::string_view text, const Font& font, double width) const {
    pango_context_set_base_dir(context_.get(), PANGO_DIRECTION_WEAK_LTR);
    Ref<PangoLayout> out = laid_out(text, font);
    pango_layout_set_width(out.get(), static_cast<int>(width * PANGO_SCALE));
    pango_layout_set_wrap(out.get(), PANGO_WRAP_WORD_CHAR);
    return out;
  }

 private:
  Ref<PangoLayout> laid_out(std::string_view text, const Font& font) const {
    Ref<PangoLayout> out(pango_layout_new(context_.get()));
    PangoFontDescription* wanted = description(font);
    pango_layout_set_font_description(out.get(), wanted);
    pango_font_description_free(wanted);
    PangoAttrList* attributes = pango_attr_list_new();
    // Tabular digits keep numbers in line; "calt" would join "->" or "!=" of a token into one sign that the text does
    // not hold.
    pango_attr_list_insert(attributes, pango_attr_font_features_new("tnum, calt 0, liga 0, dlig 0"));
    pango_layout_set_attributes(out.get(), attributes);
    pango_attr_list_unref(attributes);
    const std::string clean = without_strays(text);
    pango_layout_set_text(out.get(), clean.data(), static_cast<int>(clean.size()));
    return out;
  }

  /// As long as the text, with a control character (which is drawn as a box) for what Pango complains about: bytes that
  /// are no UTF-8, and zeros.
  static std::string without_strays(std::string_view text) {
    std::string out(text);
    for (std::size_t at = 0; at < out.size();) {
      const std::string_view rest = std::string_view(out).substr(at);
      const std::size_t stray = std::min(first_invalid_utf8(rest).value_or(rest.size()), rest.find('\0'));
      if (stray >= rest.size()) break;
      at += stray;
      out[at++] = '\x1A';
    }
    return out;
  }

  Ref<PangoFontMap> fonts_;
  Ref<PangoContext> context_;
};

}  // namespace headscope
