#pragma once
// The Positions workspace: ways of knowing where a token stands on the left, the chosen one's pictures in the middle,
// its numbers and its effect in the model on the right. Each page is a file of its own (positions_rope.cpp,
// positions_pages.cpp …). Thread rule: the UI thread. Destroy it before the App.

#include <functional>
#include <string>

#include "app/actions/action.h"
#include "app/state/controller_controls.h"
#include "app/state/positions_controller.h"
#include "app/widgets/catalogue.h"
#include "app/workspaces/atlas_panel.h"
#include "app/workspaces/workspace.h"

namespace headscope {

class PositionsWorkspace : public Workspace {
 public:
  explicit PositionsWorkspace(PositionsController& controller) : Workspace("Positions"), controller_(controller) {}
  /// What it can show, for the palette and the command line; Settings::pages remembers which.
  std::vector<CatalogueGroup> pages() const override;
  void left(const PageContext& c) override;
  void middle(const PageContext& c) override;
  void right(const PageContext& c) override;
  void controls(ControlsRecord& record) override { controls_of(controller_, record); }  ///< names what a session keeps

 private:
  /// What was asked for elsewhere; by every column, since any of them may be closed.
  void follow(const PageContext& c);
  void cards(Ui& ui, AppContext& app);
  void source(const PageContext& c);
  /// What is to be said where the open model does not know positions in this way.
  void model_note(const PageContext& c);
  bool ready() const;
  /// The page shows queries and keys of a head, and the chosen one mixes tokens by a state.
  bool lacks_head(const PageContext& c) const;
  /// It turns pairs, and the head's width is odd.
  bool lacks_pairs() const;

  // positions_rope.cpp
  void rope_middle(const PageContext& c);
  void rope_right(const PageContext& c);
  void position_sliders(Ui& ui);
  void scaling_controls(Ui& ui);

  // positions_pages.cpp
  void none_middle(const PageContext& c);
  void learned_middle(const PageContext& c);
  void sinusoidal_middle(const PageContext& c);
  void binary_middle(const PageContext& c);
  void shaw_middle(const PageContext& c);
  void transformer_xl_middle(const PageContext& c);
  void deberta_middle(const PageContext& c);
  void t5_middle(const PageContext& c);
  void chunks_middle(const PageContext& c);
  void alibi_middle(const PageContext& c);

  // positions_past.cpp
  void past_middle(const PageContext& c);
  void past_controls(const PageContext& c);
  void ramp_choice(const Ui& ui);
  void naive_middle(const PageContext& c);

  // positions_pages.cpp
  void page_controls(const PageContext& c);

  /// Loss, KL and loss per position of what is chosen, beside the model as it is.
  void in_the_model(const PageContext& c);
  /// A picture of the page (app/state/page_picture.h) in this room.
  SceneTouch show(const PageContext& c, SceneSlot& slot, const char* id, Room room);
  /// One that is not of the page's controls alone.
  SceneTouch show(const PageContext& c, SceneSlot& slot, const char* id, std::shared_ptr<const void> source,
                  const std::string& options, double width, double height, SceneSlot::Build build);

  PositionsController& controller_;
  AtlasPanel atlas_;
  SceneSlot main_{"scene.positions"}, curve_{"scene.positions.curve"}, why_{"scene.positions.why"},
      small_{"scene.positions.small"}, loss_{"scene.positions.loss"};
};

}  // namespace headscope
