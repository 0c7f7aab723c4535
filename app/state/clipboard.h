#pragma once
// A picture on the clipboard. GLFW hands over text alone; the programs that desktops have for it (wl-copy of
// wl-clipboard under Wayland, xclip under X) hold a picture for whoever pastes it.

#include <string>

namespace headscope {

/// Throws Error, which says what to install, where neither is there, and when the program fails. Any thread.
void hold_picture(const std::string& png);

}  // namespace headscope
