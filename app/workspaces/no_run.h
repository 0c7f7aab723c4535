#pragma once
// In place of what a run would show: why there is none, and what to do about it. Thread rule: the UI thread.

#include <string>

#include "app/workspaces/page_context.h"

namespace headscope {

struct NoRun {
  std::string title, advice;
};

/// REQUIRES no run on screen. `then`: what follows, a sentence; "" = nothing is said of it.
NoRun why_no_run(const PageContext& c, const std::string& then = "");
/// The same, drawn in the room that is left.
void no_run(const PageContext& c, const std::string& then = "");

}  // namespace headscope
