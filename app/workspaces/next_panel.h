#pragma once
// What the model predicts, and what the edits did to it. Thread rule: the UI thread.

#include "app/workspaces/page_context.h"
#include "app/workspaces/scene_slot.h"

namespace headscope {

/// Most probable next tokens, or those of masked ones, before → after an edit; the difference of two logits; the loss
/// of every token; the heads whose patterns moved most.
class NextPanel {
 public:
  void draw(const PageContext& c);
  /// The first and the rest of it, for a page that shows them in two places.
  void answer(const PageContext& c);
  void details(const PageContext& c);

 private:
  /// What is answered where the panel looks: at the pinned token if it is masked, else where the model usually answers.
  struct Asked {
    std::shared_ptr<const Trace> of, before, after;  ///< the last two null without an edit to compare with
    Index at = 0;
    std::vector<NextToken> next;
    NextTokenChange change;  ///< of `after` from `before`
  };
  const Asked& asked(const PageContext& c, const EditEffect* effect);
  /// The two tokens whose logits are compared there.
  std::optional<std::pair<std::int32_t, std::int32_t>> contrasted(const PageContext& c, const EditEffect* effect);
  void tokens(const PageContext& c, const EditEffect* effect);
  void masked(const PageContext& c, const EditEffect* effect);
  void contrast(const PageContext& c, const EditEffect* effect);
  void losses(const PageContext& c, const EditEffect* effect);
  void moved_heads(const PageContext& c, const EditEffect& effect);
  Asked asked_;
  SceneSlot slot_{"scene.loss"};
};

}  // namespace headscope
