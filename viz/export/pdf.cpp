#include "viz/export/pdf.h"

#include <charconv>

#include "core/base/file.h"
#include "viz/export/pdf_pages.h"

namespace headscope {

std::string encode_pdf(const Scene& scene, const OutputSize& size) {
  const OutputSize drawn{.width_px = size.width_px, .width_inches = size.width_inches, .dpi = {}};
  const double scale = pixel_size(scene, drawn).scale;  // the same limits as pixels
  PdfPages pages(scene.width * scale, scene.height * scale);
  cairo_scale(pages.cairo(), scale, scale);
  pages.draw(scene);
  return pages.finish({scene.title, scene.description, scene.recipe});
}

std::string_view pdf_drawing(std::string_view pdf) {
  static constexpr std::string_view key = "/Prev ";
  const std::size_t at = pdf.rfind(key);
  if (at == std::string_view::npos) return pdf;
  std::size_t table = pdf.size();
  std::from_chars(pdf.data() + at + key.size(), pdf.data() + pdf.size(), table);
  return pdf.substr(0, pdf.find("%%EOF", std::min(table, pdf.size())));
}

void write_pdf(const std::filesystem::path& path, const Scene& scene, const OutputSize& size) {
  write_file_atomically(path, encode_pdf(scene, size));
}

}  // namespace headscope
