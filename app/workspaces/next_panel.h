#pragma once
// What the model predicts, and what the edits did to it. Thread rule: the UI thread.

#include "app/workspaces/page_context.h"
#include "app/workspaces/scene_slot.h"

namespace headscope {

/// Most probable next tokens, before → after an edit; the difference of two logits; the loss of every token; the heads
/// whose patterns moved most.
class NextPanel {
 public:
  void draw(const PageContext& c);

 private:
  void tokens(const PageContext& c, const EditEffect* effect);
  void contrast(const PageContext& c, const EditEffect* effect);
  void losses(const PageContext& c, const EditEffect* effect);
  void moved_heads(const PageContext& c, const EditEffect& effect);
  SceneSlot slot_{"scene.loss"};
};

}  // namespace headscope
