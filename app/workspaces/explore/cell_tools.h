#pragma once
// What a person does to single cells: paints a head's mask on its map, drags one weight of a row on the map or as a
// bar. One press to one release is one step of undo (History::hold). Thread rule: the UI thread.

#include <optional>

#include "app/widgets/scene_view.h"
#include "app/workspaces/page_context.h"

namespace headscope {

class CellTools {
 public:
  /// Over the heatmap "map" of the selected head, or of a part of it, whose cells may stand for several of the map.
  void on_map(const PageContext& c, const SceneTouch& touch, const AttentionMap& map, const Heatmap& heat);
  /// Over the bars of a row, whose axis ends at 1 while a bar is dragged.
  void on_row(const PageContext& c, const SceneTouch& touch, const Scene& bars, const AttentionMap& map, Index query);
  bool dragging_bar() const { return drag_ && drag_->bar; }

 private:
  struct Drag {
    bool bar = false;
    Index query = 0, key = 0;
    double start = 0;  // weight when the button went down
    float y = 0;       // pointer there
    bool moved = false;
  };
  void say(const PageContext& c, double weight) const;
  std::optional<Drag> drag_;
  std::optional<bool> painting_;  // what the stroke makes of the cells it meets
  Index painted_query_ = -1, painted_key_ = -1;
};

}  // namespace headscope
