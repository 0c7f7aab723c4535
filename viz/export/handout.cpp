#include "viz/export/handout.h"

namespace headscope {

HandoutWords emphasised(std::string_view text) {
  HandoutWords words;
  bool strong = false;
  while (true) {
    const std::size_t end = text.find('*');
    if (end != 0 && !text.empty()) words.push_back({std::string(text.substr(0, end)), strong});
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
    strong = !strong;
  }
}

}  // namespace headscope
