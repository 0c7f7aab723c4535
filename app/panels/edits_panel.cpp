// The list of what is changed about the model: every edit can be switched off, moved, taken away, and new ones are
// chosen from a menu or written in words.

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <utility>

#include "app/panels/panels.h"
#include "app/widgets/controls.h"
#include "core/base/error.h"

namespace headscope {

void EditsPanel::add(const PanelContext& c, const Intervention& edit) {
  std::vector<Intervention> edits = c.state().document.edits;
  edits.push_back(edit);
  error_.clear();
  c.explorer.close_step();
  c.explorer.set_edits(std::move(edits));
}

void EditsPanel::list(const PanelContext& c) {
  const std::vector<Intervention>& edits = c.state().document.edits;
  std::vector<Intervention> changed = edits;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    bool on = edits[i].enabled;
    if (ImGui::Checkbox("##on", &on)) changed[i].enabled = on;
    c.ui.name(fmt::format("edit {} on", i), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    ImGui::SameLine();
    const std::string words = describe(edits[i]);
    const float close = c.ui.px(20), room = ImGui::GetContentRegionAvail().x - close;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushStyleColor(ImGuiCol_Text, vec(on ? c.ui.theme.text : c.ui.theme.faint));
    ImGui::PushClipRect(at, {at.x + room, at.y + ImGui::GetFrameHeight()}, true);
    ImGui::Selectable(words.c_str(), false, 0, {room, 0});
    ImGui::PopClipRect();
    ImGui::PopStyleColor();
    if (ImGui::IsItemHovered())
      tooltip(c.ui, {words, std::string(form_of(edits[i].action).meaning), "drag to reorder"});
    // Dragged past its neighbour, an edit changes places with it: later ones win.
    if (ImGui::IsItemActive() && !ImGui::IsItemHovered()) {
      const std::size_t other = i + (ImGui::GetMouseDragDelta(0).y < 0 ? std::size_t(-1) : 1);
      if (other < edits.size()) {
        std::swap(changed[i], changed[other]);
        ImGui::ResetMouseDragDelta();
      }
    }
    ImGui::SameLine(0, 0);
    if (ImGui::Button("×", {close, 0})) changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    c.ui.name(fmt::format("remove edit {}", i), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    ImGui::PopID();
    if (changed != edits) break;  // the list below belongs to what it was
  }
  if (changed != edits) c.explorer.set_edits(std::move(changed));
}

void EditsPanel::menu(const PanelContext& c) {
  if (menu_button(c.ui, "Add an edit", "add an edit", "", c.ui.px(26))) ImGui::OpenPopup("add edit");
  if (!ImGui::BeginPopup("add edit")) return;
  const HeadTarget target = target_of(c.state().view.edit_scope, c.state().document.selected);
  const auto item = [&](const EditForm& form, const EditAction& action) {
    Intervention edit{target, action};
    const auto* patch = std::get_if<Patch>(&action);
    if (!form.per_head) edit.target.head.reset();
    if (auto* set = std::get_if<SetWeight>(&edit.action)) {  // of the pinned cell
      set->query = static_cast<int>(c.state().document.query.value_or(set->query));
      set->key = static_cast<int>(c.state().document.key.value_or(set->key));
    }
    if (ImGui::MenuItem(text_of(action).c_str())) {
      line_ = describe(edit);
      if (!patch) add(c, edit);  // a patch needs a text first: its words wait in the line
    }
    if (ImGui::IsItemHovered()) tooltip(c.ui, {std::string(form.form), std::string(form.meaning)});
  };
  for (const EditForm& form : edit_forms()) {
    item(form, form.usual);
    if (std::holds_alternative<Ablate>(form.usual)) {
      item(form, Ablate{Ablate::By::mean, 1});
      item(form, Ablate{Ablate::By::resample, 1});
    }
    if (std::holds_alternative<ForcePattern>(form.usual)) item(form, ForcePattern{ForcePattern::Shape::previous});
    if (std::holds_alternative<SwitchOff>(form.usual)) item(form, SwitchOff{SwitchOff::Part::attention});
  }
  ImGui::EndPopup();
}

void EditsPanel::draw(const PanelContext& c) {
  section(c.ui, "EDITS", "in order; later ones win");
  list(c);
  menu(c);
  {
    const UseFont font(c.ui, c.ui.token());
    ImGui::SetNextItemWidth(-1);
    if (ImGui::InputTextWithHint("##edit words", "1.0: ablate zero ⏎", &line_, ImGuiInputTextFlags_EnterReturnsTrue)) {
      try {
        add(c, parse_intervention(line_, "edit"));
        line_.clear();
      } catch (const Error& wrong) {
        error_ = wrong.what();
      }
    }
  }
  if (error_.empty()) return;
  ImGui::PushStyleColor(ImGuiCol_Text, vec(c.ui.theme.key));
  ImGui::TextWrapped("%s", error_.c_str());
  ImGui::PopStyleColor();
}

}  // namespace headscope
