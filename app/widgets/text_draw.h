#pragma once
// A scene's Text into a Dear ImGui draw list, at any angle.
// Thread rule: the UI thread.

#include "app/widgets/ui.h"

namespace headscope {

/// `origin` is where the scene's (0, 0) lies in the window; lengths are enlarged by the interface's scale times `zoom`.
void draw_text(const Ui& ui, ImDrawList& draw, const Text& text, ImVec2 origin, double zoom = 1);

}  // namespace headscope
