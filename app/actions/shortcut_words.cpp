#include "app/actions/shortcut_words.h"

#include <algorithm>

#include "core/base/words.h"

namespace headscope {

namespace {
// "Home" is left out: it is also the name of a folder.
constexpr const char* key_names[] = {to_say("Ctrl"),   to_say("Shift"), to_say("Alt"),   to_say("Left"),
                                     to_say("Right"),  to_say("Up"),    to_say("Down"),  to_say("End"),
                                     to_say("Escape"), to_say("Enter"), to_say("Space"), to_say("or")};

std::string shown_key(const std::string& key) {
  return std::ranges::find(key_names, key) == std::end(key_names) ? key : said(key);
}
}  // namespace

std::string shown_shortcut(std::string_view shortcut) {
  std::string shown, key;
  for (const char c : shortcut) {
    if (c != '+' && c != ' ') {
      key += c;
      continue;
    }
    shown += shown_key(key) + c;
    key.clear();
  }
  return shown + shown_key(key);
}

}  // namespace headscope
