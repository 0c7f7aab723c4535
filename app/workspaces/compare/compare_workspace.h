#pragma once
// The Compare workspace: what the two sides are and heads by difference on the left; token pairs and one head in both,
// with the difference, in the middle; predictions and numbers of both on the right. What the pointer is on in one place
// is pointed out in all. Thread rule: the UI thread. Destroy it before the App.

#include <optional>
#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/state/compare_controller.h"
#include "app/state/controller_controls.h"
#include "app/widgets/catalogue.h"
#include "app/widgets/prompt_edit.h"
#include "app/workspaces/map_part.h"
#include "app/workspaces/scene_slot.h"
#include "app/workspaces/workspace.h"

namespace headscope {

class CompareWorkspace : public Workspace {
 public:
  explicit CompareWorkspace(CompareController& controller);
  void left(const PageContext& c) override;
  void middle(const PageContext& c) override;
  void right(const PageContext& c) override;
  void each_frame() override;
  std::vector<CatalogueGroup> pages() const override { return pages_; }
  void controls(ControlsRecord& record) override { controls_of(controller_, record); }  ///< names what a session keeps

 private:
  /// What was asked for elsewhere; by every column, since any of them may be closed.
  void follow(const PageContext& c);
  /// A cell or a token of one side; −1 = none.
  struct Place {
    int query_a = -1, key_a = -1, query_b = -1, key_b = -1;
    bool any() const { return query_a >= 0 || key_a >= 0 || query_b >= 0 || key_b >= 0; }
    bool operator==(const Place&) const = default;
  };
  const Comparison* shown() const;
  void sides(Ui& ui, AppContext& app);
  void atlas(Ui& ui, AppContext& app);
  void ranking(Ui& ui, AppContext& app);
  void tokens(Ui& ui, AppContext& app, float height);
  void maps(Ui& ui, AppContext& app);
  void reading(Ui& ui, AppContext& app);
  void row(Ui& ui, AppContext& app, double height);
  void predictions(Ui& ui);
  void losses(Ui& ui);
  void numbers(Ui& ui, AppContext& app);
  /// The partner in the other text fills what is empty.
  Place linked(Place place) const;
  /// What B shows beside a part of A: where the partners of its queries and keys lie.
  static MapRegion beside(const MapRegion& of_a, const Comparison& c);
  const Place& place() const { return hover_.any() ? hover_ : pinned_; }

  CompareController& controller_;
  std::vector<CatalogueGroup> pages_;
  std::string page_;  // of the settings, as last seen
  SceneSlot atlas_{"scene.compare.atlas"}, tokens_{"scene.compare.tokens"}, maps_{"scene.compare.maps"};
  MapPart part_;  // of A's map
  PromptEdit edit_;
  bool drawn_ = false;
  Place hover_, hovered_, pinned_;     // hovered_: collected in this frame, shown in the next
  int picked_a_ = -1, picked_b_ = -1;  // a token that waits for its partner
  const Comparison* seen_ = nullptr;   // what picked and pinned belong to
};

/// "0.412 → 0.125"; – where there is no number.
std::string arrow_text(double a, double b, int decimals = 3);

}  // namespace headscope
