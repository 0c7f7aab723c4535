#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>

#include "viz/export/handout.h"
#include "viz/export/pango_layout.h"
#include "viz/export/pdf_pages.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr Color ink = rgb(0x1a1a1a), quiet = rgb(0x5f6368), line_color = rgb(0xc4c7cc), answer_color = rgb(0x2a6fdb);
constexpr double side = 76, top = 92, bottom = 88;  ///< margins
constexpr double bar_room = 16;                     ///< between a coloured bar and what it marks
constexpr double smallest_picture = 0.6;            ///< of its size, rather than on another page

/// How words stand on the page.
struct Setting {
  Font font;
  double leading = 20, above = 10;
  Color color = ink;
  std::optional<Color> bar = {};  ///< along its left side
};
constexpr Setting title_setting{{FontRole::ui, 25, 600}, 31, 0}, about_setting{{FontRole::ui, 13.5, 400}, 20, 6, quiet},
    heading_setting{{FontRole::ui, 16.5, 600}, 23, 30}, prose_setting{{FontRole::ui, 13, 400}, 20, 9},
    aside_setting{{FontRole::ui, 11.5, 400}, 17, 9, quiet}, question_setting{{FontRole::ui, 13, 500}, 20, 16, ink, ink},
    choice_setting{{FontRole::ui, 13, 400}, 20, 0, ink, ink},
    answer_setting{{FontRole::ui, 13, 400}, 20, 12, ink, answer_color},
    note_setting{{FontRole::ui, 12, 400}, 18, 12, quiet, line_color};
constexpr Font furniture{FontRole::ui, 10.5, 400};  ///< what stands on every page

/// A piece of the page's whole width that is never torn apart.
struct Strip {
  double above = 0, height = 0;
  double least = 0;        ///< height, where it may be less to fit on a page
  bool may_begin = true;   ///< a page
  std::string entry = {};  ///< in the list of contents
  std::function<void(PdfPages&, double y, double height)> draw = {};
};

class Setter {
 public:
  explicit Setter(Paper paper)
      : width_(paper == Paper::a4 ? 210 / 25.4 * 96 : 8.5 * 96),
        height_(paper == Paper::a4 ? 297 / 25.4 * 96 : 11 * 96) {}

  void add(const HandoutBlock& block) {
    using Kind = HandoutBlock::Kind;
    switch (block.kind) {
      case Kind::heading: {
        const std::size_t begin = strips_.size();
        words(block.words, heading_setting, false);
        for (const HandoutSpan& span : block.words)
          if (begin < strips_.size()) strips_[begin].entry += span.text;
        tied_ = true;
        return;
      }
      case Kind::prose:
        return words(block.words, prose_setting);
      case Kind::picture:
        return picture(*block.picture);
      case Kind::aside:
        return words(block.words, aside_setting);
      case Kind::question:
        words(block.words, question_setting, false);
        for (const HandoutWords& each : block.choices) tied_ = true, words(each, choice_setting, false, "○");
        return;
      case Kind::answer:
        tied_ = true;
        return words(block.words, answer_setting);
      case Kind::note:
        return words(block.words, note_setting);
    }
  }

  void title(const Handout& handout) {
    words({{handout.title}}, title_setting, false);
    tied_ = true;
    if (!handout.about.empty()) words({{handout.about}}, about_setting, false), tied_ = true;
  }

  std::string finish(const Handout& handout) const {
    const std::vector<Placed> placed = on_pages();
    const int count = placed.empty() ? 1 : placed.back().page;
    PdfPages pages(width_, height_);
    int page = 1;
    every_page(pages, handout.title, page, count);
    for (const auto& [strip, on, y, height] : placed) {
      for (; page < on; every_page(pages, handout.title, page, count)) pages.next_page(), ++page;
      if (!strip->entry.empty()) pages.entry(strip->entry, y);
      strip->draw(pages, y, height);
    }
    return pages.finish({handout.title, handout.about});
  }

 private:
  struct Placed {
    const Strip* strip;
    int page;
    double y, height;
  };

  double inner() const { return width_ - 2 * side; }

  /// A paragraph, line by line; `apart`: it may be, but no line alone. `sign` hangs before its first line.
  void words(const HandoutWords& spans, const Setting& setting, bool apart = true, const std::string& sign = "") {
    std::string text;
    for (const HandoutSpan& span : spans) text += span.text;
    if (text.empty()) return;
    const double indent = setting.bar ? bar_room : 0, hang = sign.empty() ? 0 : 20;
    const std::shared_ptr<PangoLayout> layout(lines_.paragraph(text, setting.font, inner() - indent - hang).release(),
                                              Unref());
    PangoAttrList* const attributes = pango_attr_list_copy(pango_layout_get_attributes(layout.get()));
    pango_attr_list_insert(attributes, pango_attr_insert_hyphens_new(FALSE));  // a long token has none
    guint at = 0;
    for (const HandoutSpan& span : spans) {
      PangoAttribute* const slant = pango_attr_style_new(span.emphasised ? PANGO_STYLE_ITALIC : PANGO_STYLE_NORMAL);
      slant->start_index = at, slant->end_index = at += static_cast<guint>(span.text.size());
      pango_attr_list_insert(attributes, slant);
    }
    pango_layout_set_attributes(layout.get(), attributes);
    pango_attr_list_unref(attributes);
    const int count = pango_layout_get_line_count(layout.get());
    for (int i = 0; i < count; ++i) {
      const bool begins = i == 0 ? !tied_ : apart && i >= 2 && count - i >= 2;
      const auto draw = [layout, setting, i, x = side + indent, hang, sign](PdfPages& pages, double y, double height) {
        if (setting.bar) {
          const Rect bar{side, y, 2.5, height};
          pages.shapes()(Box{bar, *setting.bar});
        }
        const double baseline = y + height / 2 + half_capital(setting.font);
        if (i == 0 && !sign.empty()) pages.shapes()(Text{{x, baseline}, sign, setting.font, setting.color});
        pages.shapes().source(setting.color);
        PangoLayoutLine* const line = pango_layout_get_line_readonly(layout.get(), i);
        cairo_move_to(pages.cairo(), x + hang + start_of(*layout, i), baseline);
        pango_cairo_show_layout_line(pages.cairo(), line);
      };
      strips_.push_back({i == 0 ? setting.above : 0, setting.leading, setting.leading, begins, "", draw});
    }
    tied_ = false;
  }

  /// Where line `i` begins: lines that run from right to left end at the margin.
  static double start_of(PangoLayout& layout, int i) {
    PangoLayoutIter* const at = pango_layout_get_iter(&layout);
    while (i-- > 0) pango_layout_iter_next_line(at);
    PangoRectangle logical;
    pango_layout_iter_get_line_extents(at, nullptr, &logical);
    pango_layout_iter_free(at);
    return logical.x * pango_unit;
  }

  /// Without the empty margin around it.
  void picture(const Scene& scene) {
    const Rect ink = ink_of(scene);
    const double room = height_ - top - bottom - 120;  // with its heading and a few lines above it
    const double scale = std::min({1.0, inner() / ink.w, room / ink.h});
    const auto draw = [&scene, ink](PdfPages& pages, double y, double height) {
      cairo_t* const cairo = pages.cairo();
      const double shown = height / ink.h;
      cairo_save(cairo);
      cairo_translate(cairo, side, y);
      cairo_scale(cairo, shown, shown);
      cairo_translate(cairo, -ink.x, -ink.y);
      pages.draw_marks(scene);
      cairo_restore(cairo);
    };
    strips_.push_back({20, scale * ink.h, smallest_picture * scale * ink.h, !tied_, "", draw});
    tied_ = false;
  }

  /// Where the strips stand so far.
  struct Pages {
    std::span<const Strip> strips;
    double end;  ///< of a page, downwards
    std::vector<Placed> placed = {};
    int page = 1;
    double y = top;

    void put(const Strip& strip, double height) {
      if (y > top && y + strip.above + height > end + 0.01) turn();
      if (y > top) y += strip.above;
      placed.push_back({&strip, page, y, height});
      y += height;
    }
    void turn() { ++page, y = top; }
    /// These together, on the next page where there is more room, with smaller pictures where that helps; not at all
    /// where no page holds them.
    bool put_together(std::size_t begin, std::size_t stop) {
      double whole = 0, least = 0;
      for (const Strip& strip : strips.subspan(begin, stop - begin)) {
        whole += strip.above + strip.height;
        least += strip.above + strip.least;
      }
      const bool fresh = top + least - strips[begin].above <= end;  // a page of their own holds them
      if (y + least > end && !fresh) return false;
      // A picture of its size on the next page rather than the smallest one here.
      if (y > top && y + (fresh ? (whole + least) / 2 : least) > end) turn();
      double excess = std::max(0.0, y + whole - (y > top ? 0 : strips[begin].above) - end);
      for (const Strip& strip : strips.subspan(begin, stop - begin)) {
        const double less = std::min(excess, strip.height - strip.least);
        excess -= less;
        put(strip, strip.height - less);
      }
      return true;
    }
  };

  /// A section stays together where a page can hold it, else what is tied together does, else what has to.
  std::vector<Placed> on_pages() const {
    Pages pages{strips_, height_ - bottom};
    const auto next = [&](std::size_t at, bool section) {
      do ++at;
      while (at < strips_.size() && (!strips_[at].may_begin || (section && strips_[at].entry.empty())));
      return at;
    };
    for (std::size_t at = 0; at < strips_.size();) {
      const std::size_t section = next(at, true);
      if (pages.put_together(at, section)) at = section;
      while (at < section) {
        const std::size_t tied = std::min(next(at, false), section);
        if (pages.put_together(at, tied)) at = tied;
        for (; at < tied; ++at) pages.put(strips_[at], strips_[at].least);
      }
    }
    return std::move(pages.placed);
  }

  void every_page(PdfPages& pages, const std::string& title, int page, int count) const {
    const double foot = height_ - bottom / 2, head = top / 2;
    pages.shapes()(Text{{width_ - side, foot}, fmt::format("{} / {}", page, count), furniture, quiet, Anchor::end});
    if (page == 1) return;  // where it stands large
    pages.shapes()(Text{{side, head}, title, furniture, quiet});
    pages.shapes()(Line{{{side, head + 9}, {width_ - side, head + 9}}, line_color, 0.75});
  }

  PangoLines lines_{CAIRO_HINT_STYLE_NONE};
  double width_, height_;
  std::vector<Strip> strips_;
  bool tied_ = false;  ///< what comes next stays with what is before it
};

}  // namespace

std::string encode_handout_pdf(const Handout& handout, Paper paper) {
  Setter setter(paper);
  setter.title(handout);
  for (const HandoutBlock& each : handout.blocks) setter.add(each);
  return setter.finish(handout);
}

}  // namespace headscope
