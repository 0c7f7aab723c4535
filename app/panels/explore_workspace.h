#pragma once
// The Explore workspace: which panel stands in which column. Panels do not know one another; what one hovers, all show
// in the next frame. Thread rule: the UI thread. Destroy it before the App, whose GL context its pictures live in.

#include "app/actions/action.h"
#include "app/panels/panels.h"

namespace headscope {

class ExploreWorkspace {
 public:
  void left(Ui& ui, Workbench& bench);
  void middle(Ui& ui, Workbench& bench);
  void right(Ui& ui, Workbench& bench);

 private:
  PromptPanel prompt_;
  AtlasPanel atlas_;
  DepthPanel depth_;
  HeadPanel head_;
  SoftmaxPanel softmax_;
  MaskPanel mask_;
  EditsPanel edits_;
  NextPanel next_;
};

}  // namespace headscope
