#include "viz/export/glyphs.h"

#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "core/base/utf8.h"
#include "viz/export/cairo_handles.h"
#include "viz/export/pango_layout.h"

namespace headscope {

namespace {

/// Lines are laid out at this em, in pixels; nothing is rounded, so that the size does not matter.
constexpr double reference = 64;

/// One of a cluster's glyphs and where it stands from the cluster's start, in Pango's units at the reference size.
struct Piece {
  PangoGlyph glyph;
  int x, y;
  int width;  ///< into which Pango fits the box of a character that no font has
  auto operator<=>(const Piece&) const = default;
};

struct Drawn {
  Ref<PangoFont> font;
  std::vector<Piece> pieces;
  int advance;
};

/// Where the ink of all pieces lies, in pixels at the reference size.
PangoRectangle ink_of(const Drawn& drawn) {
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool any = false;
  for (const Piece& piece : drawn.pieces) {
    PangoRectangle ink;
    pango_font_get_glyph_extents(drawn.font.get(), piece.glyph, &ink, nullptr);
    if (ink.width <= 0 || ink.height <= 0) continue;
    const int left = ink.x + piece.x, top = ink.y + piece.y, right = left + ink.width, bottom = top + ink.height;
    x0 = any ? std::min(x0, left) : left, y0 = any ? std::min(y0, top) : top;
    x1 = any ? std::max(x1, right) : right, y1 = any ? std::max(y1, bottom) : bottom;
    any = true;
  }
  return {x0, y0, x1 - x0, y1 - y0};
}

}  // namespace

struct Glyphs::State {
  PangoLines lines{CAIRO_HINT_STYLE_MEDIUM};  // small type on a screen: stems on whole pixels
  std::vector<Drawn> known;
  std::map<std::tuple<PangoFont*, std::vector<Piece>, int>, int> numbers;

  int number(PangoFont* font, std::vector<Piece> pieces, int advance) {
    const auto [at, fresh] = numbers.try_emplace({font, pieces, advance}, static_cast<int>(known.size()));
    if (fresh) known.push_back({Ref<PangoFont>(PANGO_FONT(g_object_ref(font))), std::move(pieces), advance});
    return at->second;
  }

  /// Adds a run's clusters, from left to right.
  void add(const PangoLayoutRun& run, std::vector<Cluster>& out) {
    const PangoGlyphString& glyphs = *run.glyphs;
    const bool backwards = run.item->analysis.level % 2 == 1;
    const auto begin_of = [&](int glyph) { return run.item->offset + glyphs.log_clusters[glyph]; };
    const int run_end = run.item->offset + run.item->length;
    int before = run_end;  // backwards: where the cluster to the left begins, which is where this one ends
    for (int first = 0; first < glyphs.num_glyphs;) {
      int last = first + 1;
      while (last < glyphs.num_glyphs && begin_of(last) == begin_of(first)) ++last;
      std::vector<Piece> pieces;
      int pen = 0;
      for (int i = first; i < last; ++i) {
        const PangoGlyphInfo& glyph = glyphs.glyphs[i];
        if (glyph.glyph != PANGO_GLYPH_EMPTY)
          pieces.push_back({glyph.glyph, pen + glyph.geometry.x_offset, glyph.geometry.y_offset, glyph.geometry.width});
        pen += glyph.geometry.width;
      }
      const int begin = begin_of(first), end = backwards ? before : last < glyphs.num_glyphs ? begin_of(last) : run_end;
      before = begin;
      out.push_back({number(run.item->analysis.font, std::move(pieces), pen), static_cast<std::size_t>(begin),
                     static_cast<std::size_t>(end), backwards});
      first = last;
    }
  }
};

Glyphs::Glyphs() : state_(std::make_unique<State>()) {}
Glyphs::~Glyphs() = default;

int Glyphs::count() const {
  return static_cast<int>(state_->known.size());
}

std::vector<Cluster> Glyphs::line(std::string_view text, const Font& font, bool right_to_left) {
  const Ref<PangoLayout> layout = state_->lines.line(text, {font.role, reference, font.weight}, right_to_left);
  std::vector<Cluster> out;
  const PangoLayoutLine* line = pango_layout_get_line_readonly(layout.get(), 0);
  if (line == nullptr) return out;
  for (const GSList* at = line->runs; at != nullptr; at = at->next)
    state_->add(*static_cast<const PangoLayoutRun*>(at->data), out);
  return out;
}

double Glyphs::advance(int glyph) const {
  return state_->known.at(static_cast<std::size_t>(glyph)).advance * pango_unit / reference;
}

GlyphImage Glyphs::image(int glyph, double em) const {
  const Drawn& drawn = state_->known.at(static_cast<std::size_t>(glyph));
  const double scale = em / reference;
  const PangoRectangle ink = ink_of(drawn);
  GlyphImage out;
  if (ink.width <= 0 || ink.height <= 0 || !(scale > 0)) return out;
  // A pixel around, since hinting may move an edge.
  out.left = static_cast<int>(std::floor(ink.x * pango_unit * scale)) - 1;
  out.top = static_cast<int>(std::floor(ink.y * pango_unit * scale)) - 1;
  out.width = static_cast<int>(std::ceil((ink.x + ink.width) * pango_unit * scale)) + 1 - out.left;
  out.height = static_cast<int>(std::ceil((ink.y + ink.height) * pango_unit * scale)) + 1 - out.top;
  const CairoSurface surface(cairo_image_surface_create(CAIRO_FORMAT_ARGB32, out.width, out.height));
  const CairoContext cairo(cairo_create(surface.get()));
  if (cairo_status(cairo.get()) != CAIRO_STATUS_SUCCESS) return {};
  cairo_translate(cairo.get(), -out.left, -out.top);
  cairo_scale(cairo.get(), scale, scale);
  cairo_set_source_rgb(cairo.get(), 1, 1, 1);
  for (const Piece& piece : drawn.pieces) {
    PangoGlyphInfo info{piece.glyph, {piece.width, piece.x, piece.y}, {}};
    int cluster = 0;
    PangoGlyphString one{1, &info, &cluster, 1};
    cairo_move_to(cairo.get(), 0, 0);
    pango_cairo_show_glyph_string(cairo.get(), drawn.font.get(), &one);
  }
  cairo_surface_flush(surface.get());
  const unsigned char* pixels = cairo_image_surface_get_data(surface.get());
  const int stride = cairo_image_surface_get_stride(surface.get());
  out.rgba.resize(static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height) * 4);
  std::uint8_t* to = out.rgba.data();
  for (int y = 0; y < out.height; ++y) {
    const auto* row = reinterpret_cast<const std::uint32_t*>(pixels + std::ptrdiff_t{y} * stride);
    for (int x = 0; x < out.width; ++x, to += 4) {
      const std::uint32_t p = row[x], a = p >> 24;
      for (int c = 0; c < 3; ++c) {
        const std::uint32_t part = p >> (16 - 8 * c) & 255;
        // White ink that covers a share has that share in every channel; anything else is the glyph's own colour.
        out.colored = out.colored || part + 2 < a;
        to[c] = static_cast<std::uint8_t>(a == 0 ? 255 : std::min(255u, (part * 255 + a / 2) / a));
      }
      to[3] = static_cast<std::uint8_t>(a);
    }
  }
  if (!out.colored)
    for (std::size_t i = 0; i < out.rgba.size(); ++i)
      if (i % 4 != 3) out.rgba[i] = 255;
  return out;
}

Glyphs::Metrics Glyphs::metrics(const Font& font) const {
  const auto [ascent, descent] = state_->lines.metrics({font.role, reference, font.weight});
  return {ascent / reference, descent / reference};
}

bool Glyphs::has(std::int32_t character, const Font& font) {
  const std::string text = to_utf8(character);
  const Ref<PangoLayout> layout = state_->lines.line(text, {font.role, reference, font.weight});
  return pango_layout_get_unknown_glyphs_count(layout.get()) == 0;
}

std::string_view Glyphs::lacking(std::string_view text, const Font& font) {
  std::set<std::string_view> seen;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view bytes = text.substr(at, static_cast<std::size_t>(utf8_length(text[at])));
    at += bytes.size();
    if (static_cast<unsigned char>(bytes.front()) < 0x80 || !seen.insert(bytes).second) continue;
    if (first_invalid_utf8(bytes) || !has(code_point_at(bytes, 0).value, font)) return bytes;
  }
  return {};
}

bool stands_alone(std::int32_t c) {
  const auto in = [c](std::int32_t first, std::int32_t last) { return first <= c && c <= last; };
  return c < 0x300                                    // Latin, phonetic signs
         || in(0x370, 0x482) || in(0x48A, 0x58F)      // Greek, Cyrillic, Armenian
         || in(0x10A0, 0x10FF) || in(0x13A0, 0x13FF)  // Georgian, Cherokee
         || in(0x1E00, 0x200A) || in(0x2010, 0x2027)  // Latin, Greek, spaces and dashes
         || in(0x2030, 0x205E) || in(0x2070, 0x20CF)  // signs, superscripts, currencies
         || in(0x2100, 0x2319) || in(0x231C, 0x23CE)  // letterlike, arrows, mathematics, technical (no ⌚ ⌛ ⏩)
         || in(0x2400, 0x25FC) || in(0x27C0, 0x2B1A)  // pictures of controls, boxes (no ◾); mathematics, Braille
         || in(0x2C60, 0x2CEE)                        // Latin, Coptic
         || in(0x2E00, 0x2FFB) || in(0x3041, 0x3096)  // signs, radicals, kana
         || in(0x309B, 0x318F) || in(0x31A0, 0x9FFF)  // kana, bopomofo, Hangul, Han
         || in(0xA720, 0xA7FF) || in(0xAC00, 0xD7A3)  // Latin, Hangul
         || in(0xF900, 0xFB06) || in(0xFE30, 0xFE6F)  // Han, ligatures, forms for vertical text
         || in(0xFF10, 0xFF3A) || in(0xFF41, 0xFF5A)  // wide digits and letters
         || in(0xFF66, 0xFFDC) || in(0xFFFC, 0xFFFD)  // half-wide kana and Hangul, replacement
         || in(0x1D400, 0x1D7FF) || in(0x20000, 0x323AF);  // mathematical letters, Han
}

bool stands_alone(std::string_view text) {
  // Nothing below U+0300 needs a layout, and all of it begins with a byte below 0xCC.
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0xCC; })) return true;
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const auto length = static_cast<std::size_t>(utf8_length(text[at]));
    const std::string_view bytes = text.substr(at, length);
    if (lead < 0xCC || first_invalid_utf8(bytes)) {
      ++at;
      continue;
    }
    if (!stands_alone(code_point_at(text, at).value)) return false;
    at += length;
  }
  return true;
}

bool runs_right_to_left(std::string_view paragraph) {
  for (std::size_t at = 0; at < paragraph.size();) {
    const std::string_view bytes = paragraph.substr(at, static_cast<std::size_t>(utf8_length(paragraph[at])));
    if (static_cast<unsigned char>(paragraph[at]) < 0x80 || first_invalid_utf8(bytes)) {
      const char c = paragraph[at++];
      if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) return false;
      continue;
    }
    at += bytes.size();
    const auto direction = utf8proc_get_property(code_point_at(bytes, 0).value)->bidi_class;
    if (direction == UTF8PROC_BIDI_CLASS_L) return false;
    if (direction == UTF8PROC_BIDI_CLASS_R || direction == UTF8PROC_BIDI_CLASS_AL) return true;
  }
  return false;
}

}  // namespace headscope
