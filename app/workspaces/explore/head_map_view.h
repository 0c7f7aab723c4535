#pragma once
// The map of the selected head on screen: fits its room with labels that can be read, zooms to a part of it with the
// wheel, names the row and the column pointed at, and hands the cells to the tools of the hand.
// Thread rule: the UI thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/workspaces/explore/cell_tools.h"
#include "app/workspaces/explore/map_walk.h"
#include "app/workspaces/explore/shown_maps.h"
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
  /// "3rd strongest cell" of one that was jumped to; else "".
  std::string rank_of(const PageContext& c, Index query, Index key) const { return walk_.rank_of(c, query, key); }
  /// What is shown of the map; nullopt = all of it.
  std::optional<MapRegion> region() const { return part_.region(); }

 private:
  void keep_to_text(const PageContext& c);
  void follow_pin(const PageContext& c);
  void want_scene(const PageContext& c, const ShownRun& run, double width, double height);

  SceneSlot slot_{"scene.head"};
  MapPart part_;
  std::vector<std::int32_t> text_;  // ids of the tokens that the part belongs to
  std::shared_ptr<const Trace> text_of_;
  std::optional<Index> pinned_, pinned_key_;  // that were last made visible
  std::shared_ptr<ShownMaps> maps_ = std::make_shared<ShownMaps>();
  MapWalk walk_{maps_};
  std::string whole_;  // the picture that was wanted last, whatever part of the map it shows
  std::string wanted_;
  int refined_ = 0;  // how often finer cells were asked for: each time is another picture
  double cell_ = 0;  // logical pixels of a weight, as last drawn
};

}  // namespace headscope
