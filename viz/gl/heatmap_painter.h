#pragma once
// Heatmaps on the GPU: values as 32-bit floats, coloured by a lookup in the shader, so that another scale, range or
// colormap costs no upload. Cells, gaps and pooling follow viz/export/raster.cpp to the pixel: the window and a PNG
// show the same picture.
//
// Maps are painted into a layer: an image as large as the part of the window that a scene covers. It is painted when
// data, place or size change; a frame in between only shows it, whether it holds one map or hundreds.
//
// Thread rule: the thread that owns the GL context, with that context current, destructors included.

#include <memory>
#include <span>
#include <vector>

#include "viz/gl/gl_handle.h"
#include "viz/gl/heatmap_sheets.h"
#include "viz/scene/heatmap.h"
#include "viz/scene/scene.h"

namespace headscope {

/// A picture on the GPU, as it is.
class PixelTexture {
 public:
  /// Uploads. Throws Error when a side is longer than the device's textures can be.
  explicit PixelTexture(const Pixels& pixels);
  unsigned name() const { return color_.get(); }

 private:
  std::shared_ptr<const std::vector<std::uint8_t>> kept_;  ///< so that its address stands for its pixels
  GlHandle color_;
};

/// From a scene's logical pixels to pixels of the layer.
struct LayerView {
  int width = 0, height = 0;  ///< of the layer
  double scale = 1;           ///< layer pixels in a logical pixel
  double dx = 0, dy = 0;  ///< where the scene's origin lies in the layer; whole numbers keep cells where PNGs have them
  bool operator==(const LayerView&) const = default;
};

/// RGBA8, straight alpha, transparent where no cell is. Row 0 is the top row of the picture.
class HeatmapLayer {
 public:
  /// GL name of the texture, 0 before anything was painted. Texture coordinates (0, 0) are the top left corner.
  unsigned texture() const { return color_.get(); }
  int width() const { return width_; }
  int height() const { return height_; }
  /// What was painted, row by row from the top: for tests and screenshots.
  std::vector<std::uint8_t> read() const;

 private:
  friend class HeatmapPainter;
  GlHandle color_, framebuffer_;
  int width_ = 0, height_ = 0;
};

/// Shader and colormaps; one per GL context.
class HeatmapPainter {
 public:
  /// Throws Error with the driver's message when the shader does not compile.
  HeatmapPainter();
  ~HeatmapPainter();

  /// Clears the layer and paints all maps, which `sheets` was shown last, in their order. Leaves no GL state behind
  /// but: framebuffer 0 bound, no program, unit 0.
  void paint(HeatmapLayer& layer, std::span<const Heatmap* const> maps, const HeatmapSheets& sheets,
             const LayerView& view);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headscope
