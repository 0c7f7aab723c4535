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

/// In place of what asks for queries, keys and values, where the chosen head mixes tokens by a state: `title`, and a
/// button that chooses a head of the first layer that attends. REQUIRES a model of which some layer does.
void no_attention(const PageContext& c, const std::string& title, const std::string& advice);

}  // namespace headscope
