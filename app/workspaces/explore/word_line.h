#pragma once
// "Which word does “she” look at?": above the head, while a word is pinned, one or two sentences of what heads do from
// there, read off the run and tested by taking heads out, and what to look at, one click each. In the place of the
// first steps; put away with its cross, and back from the palette. Thread rule: the UI thread.

#include <memory>
#include <optional>

#include "app/state/sweep_controller.h"
#include "app/workspaces/page_context.h"
#include "core/analysis/word_answer.h"

namespace headscope {

class WordLine {
 public:
  /// Whether it has something to say here: a pinned word of a text, no lesson that says what to look at.
  static bool wanted(const PageContext& c);
  void draw(const PageContext& c);

 private:
  void keep_up(const PageContext& c);
  void things_to_look_at(const PageContext& c);

  std::optional<SweepController> controller_;
  std::optional<WordRequest> asked_;
  std::uint64_t model_ = 0;  // which reading asked_ is of
  std::shared_ptr<const WordAnswer> found_;
};

}  // namespace headscope
