#pragma once
// The Train workspace: a recipe and its run on the left, loss and heads of the moment in the middle, how heads came
// about and what the model writes on the right. Thread rule: the UI thread.

#include <string>

#include "app/actions/action.h"
#include "app/state/controller_controls.h"
#include "app/state/training_controller.h"
#include "app/workspaces/scene_slot.h"
#include "app/workspaces/workspace.h"

namespace headscope {

class TrainWorkspace : public Workspace {
 public:
  explicit TrainWorkspace(TrainingController& controller) : Workspace("Train"), controller_(controller) {}
  void left(const PageContext& c) override;
  void middle(const PageContext& c) override;
  void right(const PageContext& c) override;
  void each_frame() override { controller_.frame(); }
  KeptWork* kept() override { return &controller_; }
  void controls(ControlsRecord& record) override;  ///< names what a session keeps

 private:
  void recipe(Ui& ui);
  void shape_fields(Ui& ui);
  void controls(Ui& ui);
  void branches(Ui& ui);
  void loss(Ui& ui);
  void scrubber(Ui& ui);
  void heads(Ui& ui, AppContext& app);
  void history(Ui& ui);
  void sample(Ui& ui);
  void keep(Ui& ui, AppContext& app);

  TrainingController& controller_;
  SceneSlot atlas_{"scene.training"};
  int history_metric_ = 0;
  std::string folder_;
  std::filesystem::path replace_;  ///< a folder with a model in it: asked about
  bool replace_opens_ = false;
};

}  // namespace headscope
