#pragma once
// What sentences above the head are drawn with: a heading that puts them away, and below them things to try, buttons
// side by side, on further lines where they have no room.

#include <imgui.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/widgets/controls.h"
#include "app/workspaces/page_context.h"
#include "core/edits/intervention.h"

namespace headscope {

/// The heading of a section, with a cross at its end; true when that was clicked.
inline bool section_with_cross(const PageContext& c, const char* title, const char* remark, const char* what_it_does) {
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  const float cross = button_width(c.ui, "×");
  section(c.ui, title, remark, cross + c.ui.px(8));
  ImGui::SameLine();
  ImGui::SetCursorPosX(right - cross);
  const bool clicked = button(c.ui, "×", c.ui.px(22));
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(c.ui, {what_it_does});
  return clicked;
}

class Choices {
 public:
  explicit Choices(const PageContext& c) : c_(c), end_(ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x) {}
  /// True when it was clicked.
  bool operator()(const std::string& label) {
    if (!std::exchange(first_, false)) {
      ImGui::SameLine(0, c_.ui.px(8));
      if (ImGui::GetCursorPosX() + button_width(c_.ui, label.c_str()) > end_) ImGui::NewLine();
    }
    return button(c_.ui, label.c_str(), c_.ui.px(22));
  }
  /// Runs the model with that edit, or without it again.
  void change(const Intervention& edit, const char* make, const char* take_back) {
    std::vector<Intervention> edits = c_.state().document.edits;
    const auto there = std::ranges::find_if(edits, [&](const Intervention& each) { return alike(each, edit); });
    const bool on = there != edits.end() && there->enabled;
    if (!(*this)(on ? take_back : make)) return;
    if (on)
      edits.erase(there);
    else if (there != edits.end())
      there->enabled = true;
    else
      edits.push_back(edit);
    c_.editor.set_edits(std::move(edits));
  }
  /// On or off, and whether or not the decoder is named: the editor names it.
  static bool alike(Intervention a, Intervention b) {
    for (Intervention* each : {&a, &b}) {
      each->enabled = true;
      if (each->target.stack == Stack::only) each->target.stack = Stack::decoder;
    }
    return a == b;
  }

 private:
  const PageContext& c_;
  float end_;
  bool first_ = true;
};

}  // namespace headscope
