#pragma once
// A page of the Train workspace: small models that differ in one thing, trained side by side (core/train/trial.h). What
// is asked and the run on the left; what each can do by size, and loss over steps or where one of them looks, in the
// middle; who stands where on the right. Thread rule: the UI thread.

#include <string>

#include "app/state/trial_controller.h"
#include "app/workspaces/page_context.h"
#include "app/workspaces/scene_slot.h"

namespace headscope {

class TrialPage {
 public:
  explicit TrialPage(TrialController& controller) : controller_(controller) {}
  void left(Ui& ui, const TrialPlan& plan);
  void middle(Ui& ui, JobRunner& jobs, const TrialPlan& plan);
  void right(Ui& ui, const TrialPlan& plan);

 private:
  void score(Ui& ui, const TrialPlan& plan, double height);
  void loss(Ui& ui, const TrialPlan& plan, double height);
  void alignment(Ui& ui, JobRunner& jobs, const TrialPlan& plan);
  void writings(Ui& ui, const TrialPlan& plan, const Trace& text);

  TrialController& controller_;
  SceneSlot alignment_{"scene.trial"};
};

}  // namespace headscope
