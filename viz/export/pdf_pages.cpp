#include "viz/export/pdf_pages.h"

#include <cairo-pdf.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "viz/export/pdf.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
constexpr double points = 0.75;  ///< in a logical pixel

cairo_status_t append(void* out, const unsigned char* bytes, unsigned count) {
  try {
    static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(bytes), count);
    return CAIRO_STATUS_SUCCESS;
  } catch (...) {  // no exception may cross cairo's C frames
    return CAIRO_STATUS_NO_MEMORY;
  }
}

/// Cells side by side share an edge, through which a viewer that smooths edges would let the ground shine: each reaches
/// below those that are drawn after it.
void reach_below(cairo_t* cairo, const Heatmap& map, const CellRun& run) {
  const double reach = std::min({0.5, map.cell(0, 0).w / 2, map.cell(0, 0).h / 2});
  if (run.end < map.columns() && !map.is_masked(run.row, run.end))
    cairo_rectangle(cairo, run.rect.x, run.rect.y, run.rect.w + reach, run.rect.h);
  if (run.row + 1 == map.rows()) return;
  for (Index c = run.begin; c < run.end; ++c)
    if (const Rect cell = map.cell(run.row, c); !map.is_masked(run.row + 1, c))
      cairo_rectangle(cairo, cell.x, cell.y, cell.w, cell.h + reach);
}

class Vectors {
 public:
  Vectors(cairo_t* cairo, const CairoShapes& shapes, const Scene& scene)
      : cairo_(cairo), shapes_(shapes), cells_(scene) {}

  template <class Shape>
  void operator()(const Shape& shape) const {
    shapes_(shape);
  }

  void operator()(const Heatmap& map) const {
    if (map.rows() == 0 || map.columns() == 0) return;
    if (!cells_.drawn(map)) {
      Image image = cells_image(map);
      return shapes_(Pixels{map.rect, image.width, image.height,
                            std::make_shared<const std::vector<std::uint8_t>>(std::move(image.rgba)), false});
    }
    for (const Rect& rect : masked_field(map)) cairo_rectangle(cairo_, rect.x, rect.y, rect.w, rect.h);
    fill(map.masked_color);
    for (const CellRun& run : cell_runs(map)) {
      cairo_rectangle(cairo_, run.rect.x, run.rect.y, run.rect.w, run.rect.h);
      if (map.gap == 0) reach_below(cairo_, map, run);
      fill(run.color);
    }
  }

 private:
  void fill(Color color) const {
    shapes_.source(color);
    cairo_fill(cairo_);
  }

  cairo_t* cairo_;
  const CairoShapes& shapes_;
  VectorCells cells_;
};

/// As they stand between brackets: those that are no plain ASCII by number.
std::string bracketed(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (c < ' ' || c > '~')
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else if (c == '(' || c == ')' || c == '\\')
      out += '\\', out += c;
    else
      out += c;
  }
  return out;
}

/// Words for people: UTF-16 where they are more than plain ASCII.
std::string text_string(const std::string& words) {
  const std::string text = printable(words, std::max<std::size_t>(8 * words.size(), 64));
  if (std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) return "(" + bracketed(text) + ")";
  std::string out = "<FEFF";
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint each = code_point_at(text, at);
    at += static_cast<std::size_t>(each.length);
    const auto high = static_cast<std::uint32_t>(each.value - 0x10000);
    out += each.value < 0x10000 ? fmt::format("{:04X}", each.value)
                                : fmt::format("{:04X}{:04X}", 0xD800 + (high >> 10), 0xDC00 + (high & 0x3FF));
  }
  return out + ">";
}

/// What follows the last `name` of the file, up to the end of its line; "" where there is none.
std::string_view last(std::string_view pdf, std::string_view name) {
  const std::size_t at = pdf.rfind(name);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = pdf.substr(at + name.size());
  return rest.substr(0, rest.find('\n'));
}

/// The file with a dictionary of ours in place of cairo's, which can neither leave the date out nor hold a recipe: as
/// an update behind its end (ISO 32000-1, section 7.5.6).
std::string described(std::string pdf, const FileNote& note) {
  const std::string_view info = last(pdf, "/Info "), root = last(pdf, "/Root "), size = last(pdf, "/Size ");
  int number = 0;
  std::from_chars(info.data(), info.data() + info.size(), number);
  const std::size_t begin = pdf.rfind("startxref\n");
  if (number <= 0 || root.empty() || size.empty() || begin == std::string::npos)
    throw Error("PDF", "a file from cairo with a trailer of its own", "none");
  const std::string_view before = last(pdf, "startxref\n");
  std::string dictionary;
  for (const auto& [key, words] : {std::pair("Title", &note.title), {"Subject", &note.description}})
    if (!words->empty()) dictionary += fmt::format("\n   /{} {}", key, text_string(*words));
  if (!note.recipe.empty()) dictionary += fmt::format("{}{})", pdf_recipe_begin, bracketed(note.recipe));
  std::string update = fmt::format("{} 0 obj\n<< /Creator (Headscope){}\n>>\nendobj\n", number, dictionary);
  update += fmt::format("xref\n{} 1\n{:010} 00000 n \n", number, pdf.size());
  update += fmt::format("trailer\n<< /Size {}\n   /Root {}\n   /Info {}\n   /Prev {}\n>>\nstartxref\n{}\n%%EOF\n", size,
                        root, info, before, pdf.size() + update.find("xref\n"));
  return std::move(pdf) + update;
}
}  // namespace

PdfPages::PdfPages(double width, double height)
    : surface_(cairo_pdf_surface_create_for_stream(append, &bytes_, width * points, height * points)) {
  cairo_pdf_surface_restrict_to_version(surface_.get(), CAIRO_PDF_VERSION_1_4);
  cairo_pdf_surface_set_metadata(surface_.get(), CAIRO_PDF_METADATA_CREATE_DATE, "1970-01-01T00:00:00Z");
  cairo_.reset(cairo_create(surface_.get()));
  cairo_scale(cairo_.get(), points, points);
  shapes_ = std::make_unique<CairoShapes>(cairo_.get());
}

void PdfPages::draw(const Scene& scene) {
  if (scene.background.a) (*shapes_)(Box{{0, 0, scene.width, scene.height}, scene.background, {0, 0, 0, 0}, 0, 0});
  draw_marks(scene);
}

void PdfPages::draw_marks(const Scene& scene) {
  const Vectors vectors(cairo_.get(), *shapes_, scene);
  for (const Mark& mark : scene.marks) std::visit(vectors, mark.shape);
}

void PdfPages::next_page() {
  cairo_show_page(cairo_.get());
  ++page_;
}

void PdfPages::entry(const std::string& title, double y) {
  const std::string place = fmt::format("page={} pos=[0 {:.2f}]", page_, y * points);
  cairo_pdf_surface_add_outline(surface_.get(), CAIRO_PDF_OUTLINE_ROOT, title.c_str(), place.c_str(),
                                static_cast<cairo_pdf_outline_flags_t>(0));
}

std::string PdfPages::finish(const FileNote& note) {
  const cairo_status_t drawn = cairo_status(cairo_.get());
  cairo_surface_finish(surface_.get());
  const cairo_status_t written = cairo_surface_status(surface_.get());
  for (const cairo_status_t each : {drawn, written})
    if (each != CAIRO_STATUS_SUCCESS) throw Error("PDF", "pages that cairo can draw", cairo_status_to_string(each));
  return described(std::move(bytes_), note);
}

Rect ink_of(const Scene& scene) {
  const CairoSurface recorded(cairo_recording_surface_create(CAIRO_CONTENT_COLOR_ALPHA, nullptr));
  const CairoContext cairo(cairo_create(recorded.get()));
  const CairoShapes shapes(cairo.get());
  const Vectors vectors(cairo.get(), shapes, scene);
  for (const Mark& mark : scene.marks) std::visit(vectors, mark.shape);
  Rect ink;
  cairo_recording_surface_ink_extents(recorded.get(), &ink.x, &ink.y, &ink.w, &ink.h);
  return ink.w > 0 && ink.h > 0 ? ink : Rect{0, 0, scene.width, scene.height};
}

}  // namespace headscope
