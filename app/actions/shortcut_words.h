#pragma once
// Shortcuts as they are shown: the names of keys in the language of the window. What is parsed stays English.

#include <string>
#include <string_view>

namespace headscope {

/// "Ctrl+Shift+Z or Ctrl+Y" → "Strg+Umschalt+Z oder Strg+Y", by the table in use.
std::string shown_shortcut(std::string_view shortcut);

}  // namespace headscope
