#pragma once
// The Explore workspace: which panel stands in which column. Panels do not know one another; what one hovers, all show
// in the next frame. Thread rule: the UI thread. Destroy it before the App, whose GL context its pictures live in.

#include "app/actions/action.h"
#include "app/workspaces/explore/first_steps.h"
#include "app/workspaces/explore/panels.h"
#include "app/workspaces/explore/word_line.h"
#include "app/workspaces/workspace.h"

namespace headscope {

class ExploreWorkspace : public Workspace {
 public:
  ExploreWorkspace() : Workspace("Explore") {}
  void left(const PageContext& c) override;
  void middle(const PageContext& c) override;
  void right(const PageContext& c) override;

 private:
  void told(const PageContext& c);
  float told_height_ = 0, told_width_ = 0;  // of what stands above the head
  PromptPanel prompt_;
  TokenStrip captured_;
  PicturePanel picture_;
  AtlasPanel atlas_;
  DepthPanel depth_;
  FirstSteps first_;
  WordLine word_;
  HeadPanel head_;
  SoftmaxPanel softmax_;
  MaskPanel mask_;
  EditsPanel edits_;
  NextPanel next_;
};

}  // namespace headscope
