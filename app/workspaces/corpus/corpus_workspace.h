#pragma once
// The Corpus workspace: what is read and how far it is on the left, all heads by two metrics and the distribution of
// one in the middle, passages that show the selected head on the right. Thread rule: the UI thread.

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "app/actions/action.h"
#include "app/state/controller_controls.h"
#include "app/state/corpus_controller.h"
#include "app/workspaces/scene_slot.h"
#include "app/workspaces/workspace.h"

namespace headscope {

/// A metric's place in metrics().
std::size_t corpus_column(std::string_view id);
/// The head's number, layer-major, when the results know it.
std::optional<int> corpus_row(const CorpusStatistics& all, HeadId head);

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
  void follow(const PageContext& c);
  /// Of the stack that is looked at. REQUIRES results.
  const CorpusStatistics& part() const { return controller_.results()->part(stack_); }
  /// Why no head has that number there: "queries and keys are of two texts."; "" where one has.
  std::string why_none(std::size_t metric) const;
  std::size_t or_else(std::size_t chosen, const char* other) const;
  std::size_t shown() const { return or_else(shown_, "entropy"); }
  void metric_menu(const Ui& ui, const char* id, const char* what, std::size_t& chosen, std::size_t now) const;
  void scatter(Ui& ui, AppContext& app, double height);
  void heads(Ui& ui, AppContext& app, double width, double height);
  void histogram(Ui& ui, AppContext& app, double width, double height);
  void numbers(Ui& ui, AppContext& app);
  void examples(Ui& ui, AppContext& app);
  void picture_example(Ui& ui, AppContext& app, std::size_t number, const ShownExample& example,
                       const std::string& value);

  CorpusController& controller_;
  std::size_t x_, y_, shown_;  // metrics
  int spread_ = 0, kind_ = 0;  // tiles: mean or spread; examples: ExampleKind
  Stack stack_ = Stack::only;  // of results of several: that of the document, while such a model is open
  std::string file_;
  SceneSlot scatter_{"scene.corpus.scatter"}, heads_{"scene.corpus.heads"}, histogram_{"scene.corpus.histogram"};
  std::deque<SceneSlot> pictures_;  // of examples
};

}  // namespace headscope
