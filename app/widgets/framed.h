#pragma once
// What a step of a lesson, or the pointer, points at on the screen: the row of a map, a cell, a picture. Collected anew
// in every frame while somebody asks for it, as the spotlight does. Thread rule: the UI thread.

#include <imgui.h>

#include <utility>
#include <vector>

namespace headscope {

struct Framed {
  bool asked = false;
  std::vector<std::pair<ImVec2, ImVec2>> areas;  ///< window coordinates: upper left, lower right

  void add(ImVec2 min, ImVec2 max) {
    if (asked && min.x < max.x && min.y < max.y) areas.emplace_back(min, max);
  }
};

}  // namespace headscope
