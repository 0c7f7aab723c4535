#pragma once
// The Train workspace: a recipe and its run on the left, loss and heads of the moment in the middle, how heads came
// about and what the model writes on the right; or a trial, small models side by side. Thread rule: the UI thread.

#include <string>

#include "app/actions/action.h"
#include "app/state/controller_controls.h"
#include "app/state/training_controller.h"
#include "app/state/trial_controller.h"
#include "app/workspaces/scene_slot.h"
#include "app/workspaces/train/trial_page.h"
#include "app/workspaces/workspace.h"

namespace headscope {

class TrainWorkspace : public Workspace {
 public:
  TrainWorkspace(TrainingController& controller, TrialController& trials)
      : Workspace("Train"), controller_(controller), trials_(trials), trial_(trials) {}
  void left(const PageContext& c) override;
  void middle(const PageContext& c) override;
  void right(const PageContext& c) override;
  void each_frame() override {
    controller_.frame();
    trials_.frame();
  }
  std::vector<CatalogueGroup> pages() const override;
  KeptWork* kept() override { return &controller_; }
  void controls(ControlsRecord& record) override;  ///< names what a session keeps

 private:
  void recipe(Ui& ui);
  void controls(Ui& ui);
  void balance_price(Ui& ui);
  void branches(Ui& ui);
  void loss(Ui& ui);
  void scrubber(Ui& ui);
  void heads(Ui& ui, AppContext& app);
  void history(Ui& ui);
  void sample(Ui& ui);
  void keep(Ui& ui, AppContext& app);

  // train_shape.cpp
  void shape(Ui& ui);
  void shape_fields(Ui& ui);

  /// The trial on screen; null while one model is.
  const TrialPlan* trial(const AppContext& app) const;

  TrainingController& controller_;
  TrialController& trials_;
  TrialPage trial_;
  SceneSlot atlas_{"scene.training"};
  int history_metric_ = 0;
  static constexpr double usual_balance_price = 0.02, usual_balance_end = 0.5;
  double balance_price_ = usual_balance_price;  ///< of the draft when it had experts last
  double balance_end_ = usual_balance_end;      ///< of the slider's way: recipes may ask for more than is usual
  std::string folder_;
  std::filesystem::path replace_;  ///< a folder with a model in it: asked about
  bool replace_opens_ = false;
};

}  // namespace headscope
