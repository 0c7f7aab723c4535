#pragma once
// Cairo's surfaces and contexts, owned.

#include <cairo.h>

#include <memory>

namespace headscope {

struct DestroySurface {
  void operator()(cairo_surface_t* s) const { cairo_surface_destroy(s); }
};
struct DestroyCairo {
  void operator()(cairo_t* c) const { cairo_destroy(c); }
};
using CairoSurface = std::unique_ptr<cairo_surface_t, DestroySurface>;
using CairoContext = std::unique_ptr<cairo_t, DestroyCairo>;

}  // namespace headscope
