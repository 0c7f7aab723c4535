#pragma once
// The Corpus workspace: what is read and how far it is on the left, all heads by two metrics and the distribution of
// one in the middle, passages that show the selected head on the right. Thread rule: the UI thread.

#include <string>

#include "app/actions/action.h"
#include "app/state/controller_controls.h"
#include "app/state/corpus_controller.h"
#include "app/workspaces/scene_slot.h"
#include "app/workspaces/workspace.h"

namespace headscope {

class CorpusWorkspace : public Workspace {
 public:
  explicit CorpusWorkspace(CorpusController& controller);
  void left(const PageContext& c) override;
  void middle(const PageContext& c) override;
  void right(const PageContext& c) override;
  void each_frame() override { controller_.frame(); }
  void controls(ControlsRecord& record) override;  ///< names what a session keeps

 private:
  void source(Ui& ui, AppContext& app);
  void progress(Ui& ui);
  void keep(Ui& ui);
  void scatter(Ui& ui, AppContext& app, double height);
  void heads(Ui& ui, AppContext& app, double width, double height);
  void histogram(Ui& ui, AppContext& app, double width, double height);
  void numbers(Ui& ui, AppContext& app);
  void examples(Ui& ui, AppContext& app);

  CorpusController& controller_;
  std::size_t x_, y_, shown_;  // metrics
  int spread_ = 0, kind_ = 0;  // tiles: mean or spread; examples: ExampleKind
  std::string file_;
  SceneSlot scatter_{"scene.corpus.scatter"}, heads_{"scene.corpus.heads"}, histogram_{"scene.corpus.histogram"};
};

}  // namespace headscope
