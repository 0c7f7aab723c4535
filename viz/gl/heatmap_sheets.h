#pragma once
// The numbers of a scene's heatmaps on the GPU, side by side in as few textures as hold them, so that a thousand small
// maps are drawn in one go (heatmap_painter.h). Scale, range, colours and place are no part of it. A map whose numbers
// change takes the place of the one before it, if that was as large, and is uploaded alone.

#include <cstdint>
#include <span>
#include <vector>

#include "viz/gl/gl_handle.h"
#include "viz/scene/heatmap.h"

namespace headscope {

class HeatmapSheets {
 public:
  /// Of textures of at most `longest` cells on a side; 0 = as long as the device allows.
  explicit HeatmapSheets(Index longest = 0) : longest_(longest) {}
  /// Uploads the numbers and masks that are not there. Throws Error when a map's side is longer than the device's
  /// textures can be; then nothing is held.
  void show(std::span<const Heatmap* const> maps);
  std::size_t bytes() const;                     ///< of the textures
  std::size_t uploaded() const { return new_; }  ///< maps, by the last show()
  std::size_t sheets() const { return sheets_.size(); }

 private:
  friend class HeatmapPainter;
  /// A map lies in a rectangle one wider than it has columns: what its rows are divided by stands to the right.
  struct Map {
    Tensor values;  ///< keeps the storage alive, so that its address stands for its numbers
    std::vector<std::uint8_t> masked;
    std::vector<float> row_high;
    std::size_t sheet = 0;
    Index x = 0, y = 0;

    bool holds(const Heatmap& map) const;
  };
  struct Sheet {
    GlHandle data, mask;  ///< numbers; 0 shown, 1 masked, 2 missing
    Index width = 0, height = 0;
  };
  void lay_out(std::span<const Heatmap* const> maps);
  void upload_sheet(std::size_t sheet);

  Index longest_;
  std::vector<Map> maps_;
  std::vector<Sheet> sheets_;
  std::size_t new_ = 0;
};

}  // namespace headscope
