#pragma once
// The map of the selected head on screen: fits its room with labels that can be read, zooms to a part of it with the
// wheel, names the row and the column pointed at, and hands the cells to the tools of the hand.
// Thread rule: the UI thread.

#include <cstdint>
#include <optional>
#include <vector>

#include "app/workspaces/explore/cell_tools.h"
#include "app/workspaces/map_part.h"
#include "app/workspaces/page_context.h"
#include "app/workspaces/scene_slot.h"
#include "app/workspaces/shown_run.h"

namespace headscope {

class HeadMapView {
 public:
  /// In the next width × height logical pixels. REQUIRES a run with this map.
  void draw(const PageContext& c, const AttentionMap& map, CellTools& tools, double width, double height);
  /// The whole map again.
  void reset() { part_.reset(); }
  /// What is shown of the map; nullopt = all of it.
  std::optional<MapRegion> region() const { return part_.region(); }

 private:
  void keep_to_text(const PageContext& c);
  void follow_pin(const PageContext& c);

  SceneSlot slot_{"scene.head"};
  MapPart part_;
  std::vector<std::int32_t> text_;  // ids of the tokens that the part belongs to
  std::optional<Index> pinned_;     // row that was last made visible
};

}  // namespace headscope
