#pragma once
// What somebody who opens the window for the first time is met with, above the head: one sentence about the text on
// screen, read off the run and tested by taking a head out, and what to try, one click each. Nothing modal; put away
// for good with its cross. Thread rule: the UI thread.

#include <memory>
#include <optional>

#include "app/state/sweep_controller.h"
#include "app/workspaces/page_context.h"
#include "core/analysis/findings.h"

namespace headscope {

class FirstSteps {
 public:
  /// Settings::first_steps is set, there is a text, and no lesson is taken.
  static bool wanted(const PageContext& c);
  void draw(const PageContext& c);
  /// Whether the head and the row on screen are those that the sentence is about.
  bool speaks_of_pinned(const PageContext& c) const;

 private:
  void keep_up(const PageContext& c);
  void show_its_head(const PageContext& c);
  void sentence(const PageContext& c) const;
  void things_to_try(const PageContext& c);
  const Finding* cause() const;

  std::optional<SweepController> controller_;
  std::optional<FindingsRequest> asked_;
  std::uint64_t model_ = 0;  // which reading asked_ is of
  std::shared_ptr<const Findings> found_;
  std::optional<std::uint64_t> choices_;  // of the person, when it began to ask
};

}  // namespace headscope
