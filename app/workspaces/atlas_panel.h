#pragma once
// The heads of the run on screen, side by side. Thread rule: the UI thread.

#include "app/workspaces/page_context.h"
#include "app/workspaces/scene_slot.h"

namespace headscope {

/// Every head as a thumbnail or a metric's tile; click selects.
class AtlasPanel {
 public:
  void draw(const PageContext& c);

 private:
  SceneSlot slot_{"scene.atlas"};
};

}  // namespace headscope
