#pragma once
// A page of the Train workspace: small models that differ in one thing, trained side by side (core/train/trial.h). What
// is asked and the run on the left; loss over steps and what each can do by size in the middle; who stands where on the
// right. Thread rule: the UI thread.

#include <string>

#include "app/state/trial_controller.h"
#include "app/workspaces/page_context.h"

namespace headscope {

class TrialPage {
 public:
  explicit TrialPage(TrialController& controller) : controller_(controller) {}
  void left(Ui& ui, const TrialPlan& plan);
  void middle(Ui& ui, const TrialPlan& plan);
  void right(Ui& ui, const TrialPlan& plan);

 private:
  TrialController& controller_;
};

}  // namespace headscope
