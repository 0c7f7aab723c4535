#pragma once
// "Which word does “she” look at?": above the head, for the pinned word one or two sentences of what heads do from
// there, read off the run and tested by running it without such a look, and what to look at, one click each. It asks
// for a word while none is pinned, so that the map keeps its place when one is. The first steps go before it; put away
// with its cross, and back from the palette. Thread rule: the UI thread.

#include <memory>
#include <optional>

#include "app/state/sweep_controller.h"
#include "app/workspaces/page_context.h"
#include "core/analysis/word_answer.h"

namespace headscope {

class WordLine {
 public:
  /// Whether it has something to say here: a text of the decoder or the only stack, no lesson that says what to look
  /// at.
  static bool wanted(const PageContext& c);
  void draw(const PageContext& c);
  /// While something else is drawn in its place.
  void rest();

 private:
  void wish(WordRequest now);
  void keep_up(const PageContext& c);
  void things_to_look_at(const PageContext& c);
  bool answered() const { return controller_ && controller_->phase() == SweepController::Phase::finished && found_; }

  std::optional<SweepController> controller_;
  std::shared_ptr<const TracedRun> seen_;  // that wished_ is about
  std::optional<WordRequest> wished_, asked_;
  double wished_at_ = 0;     // seconds, of ImGui
  bool allowed_ = false;     // to take longer than usual, this once
  std::uint64_t model_ = 0;  // which reading asked_ is of
  std::shared_ptr<const WordAnswer> found_;
  HeadView before_ = HeadView::map;  // all heads were shown
};

}  // namespace headscope
