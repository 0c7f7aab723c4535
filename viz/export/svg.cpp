#include "viz/export/svg.h"

#include <fmt/format.h>
#include <glib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

#include "core/base/file.h"
#include "viz/export/pango_text.h"
#include "viz/export/png.h"
#include "viz/export/vector_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

std::string escaped(std::string_view text, std::size_t limit = 1 << 20) {
  std::string out;
  for (const char c : printable(text, limit)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// Punctuation beside punctuation goes into spans of its own: coding faces join "<|" or "->" into one sign, and not
/// every renderer can be told to leave that.
std::string parted(std::string_view text) {
  const auto joins = [](char c) { return c > ' ' && c < 0x7F && !g_ascii_isalnum(c); };
  std::string out;
  bool open = false;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= text.size(); ++i) {
    if (i < text.size() && !(joins(text[i - 1]) && joins(text[i]))) continue;
    open |= i < text.size();
    const std::string piece = escaped(text.substr(begin, i - begin));
    out += open ? "<tspan>" + piece + "</tspan>" : piece;
    begin = i;
  }
  return out;
}

/// Thousandths of a pixel are finer than any printer; shorter numbers make smaller files.
std::string number(double x) {
  std::string text = fmt::format("{:.3f}", std::isfinite(x) ? x : 0.0);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

class Writer {
 public:
  explicit Writer(const Scene& scene) : vectors_(scene) {}

  void mark(const Mark& mark) {
    open_ = "";
    if (!mark.id.empty()) open_ += fmt::format(" id=\"{}\"", escaped(mark.id));
    inside_ = mark.tooltip.empty() ? "" : "<title>" + escaped(mark.tooltip) + "</title>";
    std::visit(*this, mark.shape);
  }

  void operator()(const Box& box) {
    element("rect", rect(box.rect) + (box.radius > 0 ? fmt::format(" rx=\"{}\"", number(box.radius)) : "") +
                        paint("fill", box.fill) + outline(box.stroke, box.stroke_width));
  }

  void operator()(const Line& line) {
    if (line.points.size() < 2) return;
    std::string points;
    for (const Point& p : line.points) points += (points.empty() ? "" : " ") + number(p.x) + "," + number(p.y);
    element("polyline",
            " points=\"" + points + "\" fill=\"none\" stroke-linejoin=\"round\"" + outline(line.color, line.width));
  }

  void operator()(const Curve& c) {
    element("path", fmt::format(" d=\"M{} {}C{} {} {} {} {} {}\" fill=\"none\"", number(c.from.x), number(c.from.y),
                                number(c.control_from.x), number(c.control_from.y), number(c.control_to.x),
                                number(c.control_to.y), number(c.to.x), number(c.to.y)) +
                        outline(c.color, c.width));
  }

  void operator()(const Text& text) {
    std::string attributes = fmt::format(" x=\"{}\" y=\"{}\"", number(text.at.x), number(text.at.y));
    if (text.degrees != 0)
      attributes +=
          fmt::format(" transform=\"rotate({} {} {})\"", number(text.degrees), number(text.at.x), number(text.at.y));
    if (text.anchor != Anchor::start)
      attributes += fmt::format(" text-anchor=\"{}\"", text.anchor == Anchor::middle ? "middle" : "end");
    attributes +=
        fmt::format(" font-family=\"{}\" font-size=\"{}\"", font_families(text.font.role), number(text.font.size));
    if (text.font.weight != 400) attributes += fmt::format(" font-weight=\"{}\"", text.font.weight);
    attributes += paint("fill", text.color) + " xml:space=\"preserve\"";
    inside_ += text.font.role == FontRole::mono ? parted(text.text) : escaped(text.text);
    element("text", attributes);
  }

  void operator()(const Heatmap& map) {
    if (map.rows() == 0 || map.columns() == 0) return;
    if (vectors_.drawn(map))
      cells(map);
    else
      image(map.rect, cells_image(map), false);
  }

  void operator()(const Pixels& pixels) {
    if (pixels.width > 0 && pixels.height > 0)
      image(pixels.rect, {pixels.width, pixels.height, *pixels.rgba}, pixels.smooth);
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string rect(const Rect& r) {
    return fmt::format(" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", number(r.x), number(r.y), number(r.w),
                       number(r.h));
  }
  static std::string paint(std::string_view what, Color color) {
    if (color.a == 0) return fmt::format(" {}=\"none\"", what);
    std::string out = fmt::format(" {}=\"{}\"", what, hex(color));
    if (color.a != 255) out += fmt::format(" {}-opacity=\"{}\"", what, number(color.a / 255.0));
    return out;
  }
  static std::string outline(Color color, double width) {
    return color.a && width > 0 ? paint("stroke", color) + fmt::format(" stroke-width=\"{}\"", number(width)) : "";
  }
  void element(std::string_view tag, const std::string& attributes) {
    out_ += fmt::format("<{}{}{}", tag, open_, attributes);
    out_ += inside_.empty() ? "/>\n" : fmt::format(">{}</{}>\n", inside_, tag);
  }

  /// One rectangle for each run of cells; masked cells become a single path.
  void cells(const Heatmap& map) {
    out_ += fmt::format("<g{} shape-rendering=\"crispEdges\">{}\n", open_, inside_);
    std::string path;
    for (const auto& [x, y, w, h] : masked_field(map))
      path += fmt::format("M{} {}h{}v{}h{}z", number(x), number(y), number(w), number(h), number(-w));
    if (!path.empty()) out_ += fmt::format("<path d=\"{}\"{}/>\n", path, paint("fill", map.masked_color));
    for (const CellRun& run : cell_runs(map))
      out_ += fmt::format("<rect{}{}/>\n", rect(run.rect), paint("fill", run.color));
    out_ += "</g>\n";
  }

  void image(const Rect& place, const Image& pixels, bool smooth) {
    const std::string png = encode_png(pixels);
    const std::unique_ptr<char, void (*)(void*)> base64(
        g_base64_encode(reinterpret_cast<const guchar*>(png.data()), png.size()), g_free);
    element("image", rect(place) + " preserveAspectRatio=\"none\"" +
                         (smooth ? ""
                                 : " image-rendering=\"optimizeSpeed\""
                                   " style=\"image-rendering:pixelated\"") +
                         " xlink:href=\"data:image/png;base64," + base64.get() + "\"");
  }

  VectorCells vectors_;
  std::string out_, open_, inside_;
};

/// Width as CSS wants it: pixels of 1/96 inch, or inches.
std::string shown_size(const Scene& scene, const OutputSize& size) {
  if (size.width_inches)
    return fmt::format("width=\"{}in\" height=\"{}in\"", number(*size.width_inches),
                       number(*size.width_inches * scene.height / scene.width));
  const double width = size.width_px ? *size.width_px : scene.width;
  return fmt::format("width=\"{}\" height=\"{}\"", number(width), number(width * scene.height / scene.width));
}

}  // namespace

std::string encode_svg(const Scene& scene, const OutputSize& size) {
  pixel_size(scene,
             {.width_px = size.width_px, .width_inches = size.width_inches, .dpi = {}});  // the same limits as pixels
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" {} "
      "viewBox=\"0 0 {} {}\" role=\"img\" style=\"font-variant-numeric:tabular-nums;font-variant-ligatures:none\">\n",
      shown_size(scene, size), number(scene.width), number(scene.height));
  if (!scene.title.empty()) out += "<title>" + escaped(scene.title) + "</title>\n";
  if (!scene.description.empty()) out += "<desc>" + escaped(scene.description) + "</desc>\n";
  if (!scene.recipe.empty())
    out += std::string(svg_recipe_begin) + escaped(scene.recipe, scene.recipe.size()) + "</metadata>\n";
  Writer writer(scene);
  if (scene.background.a)
    writer.mark({Box{{0, 0, scene.width, scene.height}, scene.background, {0, 0, 0, 0}, 0, 0}, "", ""});
  for (const Mark& mark : scene.marks) writer.mark(mark);
  return out + writer.take() + "</svg>\n";
}

void write_svg(const std::filesystem::path& path, const Scene& scene, const OutputSize& size) {
  write_file_atomically(path, encode_svg(scene, size));
}

}  // namespace headscope
