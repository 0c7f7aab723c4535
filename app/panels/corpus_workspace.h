#pragma once
// The Corpus workspace: what is read and how far it is on the left, all heads by two metrics and the distribution of
// one in the middle, passages that show the selected head on the right. Thread rule: the UI thread.

#include <string>

#include "app/actions/action.h"
#include "app/panels/scene_slot.h"
#include "app/state/corpus_desk.h"
#include "app/state/desk_controls.h"

namespace headscope {

class CorpusWorkspace {
 public:
  static constexpr const char* title = "Corpus";

  explicit CorpusWorkspace(CorpusDesk& desk);
  void left(Ui& ui, Workbench& bench);
  void middle(Ui& ui, Workbench& bench);
  void right(Ui& ui, Workbench& bench);
  void controls(ControlsRecord& record);  ///< names what a session keeps

 private:
  void source(Ui& ui, Workbench& bench);
  void progress(Ui& ui);
  void keep(Ui& ui);
  void scatter(Ui& ui, Workbench& bench, double height);
  void heads(Ui& ui, Workbench& bench, double width, double height);
  void histogram(Ui& ui, Workbench& bench, double width, double height);
  void numbers(Ui& ui, Workbench& bench);
  void examples(Ui& ui, Workbench& bench);

  CorpusDesk& desk_;
  std::size_t x_, y_, shown_;  // metrics
  int spread_ = 0, kind_ = 0;  // tiles: mean or spread; examples: ExampleKind
  std::string file_;
  SceneSlot scatter_{"scene.corpus.scatter"}, heads_{"scene.corpus.heads"}, histogram_{"scene.corpus.histogram"};
};

}  // namespace headscope
