#pragma once
// The marks of a scene that cairo draws alike on every surface; heatmaps are drawn by each printer in its own way.
// Internal to viz/export.

#include "viz/export/cairo_handles.h"
#include "viz/export/pango_text.h"
#include "viz/scene/scene.h"

namespace headscope {

class CairoShapes {
 public:
  /// `cairo` has to live as long; it is its owner's to transform.
  explicit CairoShapes(cairo_t* cairo) : cairo_(cairo) {}
  void operator()(const Box& box) const;
  void operator()(const Line& line) const;
  void operator()(const Curve& curve) const;
  void operator()(const Text& text) const { text_.draw(cairo_, text); }
  void operator()(const Pixels& pixels) const;
  void source(Color color) const;

 private:
  void stroke(Color color, double width) const;
  void trace_path(const Box& box) const;

  cairo_t* cairo_;
  PangoText text_;
};

}  // namespace headscope
