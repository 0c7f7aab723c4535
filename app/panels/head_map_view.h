#pragma once
// The map of the selected head on screen: fits its room with labels that can be read, zooms to a part of it with the
// wheel, names the row and the column pointed at, and hands the cells to the tools of the hand.
// Thread rule: the UI thread.

#include <cstdint>
#include <optional>
#include <vector>

#include "app/panels/cell_tools.h"
#include "app/panels/panel_context.h"
#include "app/panels/scene_slot.h"
#include "app/panels/shown_run.h"
#include "viz/scene/map_cells.h"

namespace headscope {

class HeadMapView {
 public:
  /// In the next width × height logical pixels. REQUIRES a run with this map.
  void draw(const PanelContext& c, const AttentionMap& map, CellTools& tools, double width, double height);
  /// The whole map again.
  void reset() { part_.reset(); }
  /// What is shown of the map; nullopt = all of it.
  std::optional<MapRegion> region() const;

 private:
  /// A part of the map, in positions; the fractions of a slow wheel or drag are kept.
  struct Part {
    double query = 0, key = 0;     ///< first ones
    Index n_query = 0, n_key = 0;  ///< how many
  };
  void keep_to_text(const PanelContext& c);
  void follow_pin(const PanelContext& c);
  void zoom(const SceneTouch& touch, const Heatmap& heat, double lines);
  void pan(const PanelContext& c, const SceneTouch& touch, const Heatmap& heat);
  bool use_minimap(const SceneTouch& touch, const Scene& scene);
  void reset_button(const PanelContext& c, const SceneTouch& touch, const Scene& scene);
  void place(double query, double key);

  SceneSlot slot_{"scene.head"};
  std::optional<Part> part_;
  Index n_query_ = 0, n_key_ = 0;   // of the map as it is shown, in tokens or words
  std::vector<std::int32_t> text_;  // ids of the tokens that the part belongs to
  std::optional<Index> pinned_;     // row that was last made visible
  bool on_minimap_ = false;         // the button went down there
};

}  // namespace headscope
