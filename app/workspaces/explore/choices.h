#pragma once
// Things to try below a sentence: buttons side by side, on further lines where they have no room.

#include <imgui.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/widgets/controls.h"
#include "app/workspaces/page_context.h"
#include "core/edits/intervention.h"

namespace headscope {

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
  /// Runs the model with that ablation, or without it again.
  void take_out(const Intervention& edit) {
    std::vector<Intervention> edits = c_.state().document.edits;
    const auto there = std::ranges::find(edits, edit);
    if (!(*this)(there == edits.end() ? "Take it out" : "Put it back")) return;
    if (there == edits.end())
      edits.push_back(edit);
    else
      edits.erase(there);
    c_.editor.set_edits(std::move(edits));
  }

 private:
  const PageContext& c_;
  float end_;
  bool first_ = true;
};

}  // namespace headscope
