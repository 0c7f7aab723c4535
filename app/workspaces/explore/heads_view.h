#pragma once
// One token in all heads: the row of the pinned query in every head, layer under layer or strongest first; a click
// selects the head. Thread rule: the UI thread.

#include "app/workspaces/page_context.h"
#include "app/workspaces/scene_slot.h"

namespace headscope {

class HeadsView {
 public:
  /// In the next width × height logical pixels. REQUIRES a run; `query`: the token whose rows are shown.
  void draw(const PageContext& c, Index query, double width, double height);

 private:
  void order_choice(const PageContext& c, Index query);
  SceneSlot slot_{"scene.heads"};
  bool strongest_first_ = false;
};

}  // namespace headscope
