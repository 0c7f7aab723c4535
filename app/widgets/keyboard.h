#pragma once
// Controls by keyboard: Tab goes from one to the next, through all columns; arrows go to the neighbour, Space and Enter
// press, Left and Right move a slider. Escape, or the pointer, ends that, and the arrows walk heads and tokens again.
// Thread rule: the UI thread.

#include <imgui.h>

namespace headscope {

/// Tab was pressed: arrows, Enter, Space, Home, End and Escape belong to the controls.
bool walking_controls();

/// An invisible button that the keyboard reaches. With `tab_stop` false only by arrows: one of many alike.
bool pressable(const char* id, ImVec2 size, bool tab_stop = true);

/// Of the item just made, while the keyboard is at it: −1, 0 or 1 for Left and Right, ten times that with Shift, which
/// then move nothing else.
int sideways_steps();

/// Once per frame, last: keeps the keys above from Dear ImGui while they walk heads and tokens; takes the first Escape.
/// True when that was pressed.
bool share_keys();

}  // namespace headscope
