#pragma once
// Pages of a PDF, drawn one after another. Internal to viz/export.

#include <memory>
#include <string>

#include "viz/export/cairo_shapes.h"
#include "viz/export/png.h"
#include "viz/export/vector_cells.h"

namespace headscope {

/// Lengths are logical pixels, 1/96 inch.
class PdfPages {
 public:
  PdfPages(double width, double height);
  PdfPages(const PdfPages&) = delete;
  PdfPages& operator=(const PdfPages&) = delete;

  cairo_t* cairo() const { return cairo_.get(); }
  const CairoShapes& shapes() const { return *shapes_; }
  /// In the present user space.
  void draw(const Scene& scene);
  void draw_marks(const Scene& scene);  ///< without its ground
  /// What is drawn from now on stands on the next one.
  void next_page();
  /// An entry in the list of contents that viewers show beside the pages, which leads to this height on this page.
  void entry(const std::string& title, double y);
  /// The file. Throws Error where cairo failed at any time.
  std::string finish(const FileNote& note);

 private:
  std::string bytes_;
  int page_ = 1;
  CairoSurface surface_;  // after what it writes into
  CairoContext cairo_;
  std::unique_ptr<CairoShapes> shapes_;
};

/// Where a scene's marks are, without the ground around them; not empty.
Rect ink_of(const Scene& scene);

}  // namespace headscope
