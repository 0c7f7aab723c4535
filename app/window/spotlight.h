#pragma once
// While presenting: all but what the step is about, or what the pointer is on, is dimmed. Thread rule: the UI thread.

#include "app/widgets/ui.h"

namespace headscope {

/// Dims the window but for the areas that were framed in this frame; where none was, but for a disc round the pointer.
/// Call it last: popups that are open are left alone.
void draw_spotlight(const Ui& ui);

}  // namespace headscope
