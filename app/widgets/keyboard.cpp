#include "app/widgets/keyboard.h"

#include <imgui_internal.h>

#include <initializer_list>
#include <utility>

namespace headscope {

namespace {
constexpr ImGuiKey walking_keys[] = {ImGuiKey_LeftArrow, ImGuiKey_RightArrow, ImGuiKey_UpArrow, ImGuiKey_DownArrow,
                                     ImGuiKey_Home,      ImGuiKey_End,        ImGuiKey_PageUp,  ImGuiKey_PageDown};
}

bool walking_controls() {
  return ImGui::GetIO().NavVisible;
}

bool pressable(const char* id, ImVec2 size, bool tab_stop) {
  if (!tab_stop) ImGui::PushItemFlag(ImGuiItemFlags_NoTabStop, true);
  const bool pressed = ImGui::InvisibleButton(id, size, ImGuiButtonFlags_EnableNav);
  if (!tab_stop) ImGui::PopItemFlag();
  return pressed;
}

int sideways_steps() {
  if (!walking_controls() || !ImGui::IsItemFocused()) return 0;
  int steps = 0;
  for (const auto& [key, way] : {std::pair{ImGuiKey_LeftArrow, -1}, {ImGuiKey_RightArrow, 1}}) {
    if (ImGui::IsKeyPressed(key)) steps += way;
    ImGui::SetKeyOwner(key, ImGui::GetItemID());
  }
  return ImGui::GetIO().KeyShift ? 10 * steps : steps;
}

bool share_keys() {
  const ImGuiIO& io = ImGui::GetIO();
  const bool typing = io.WantTextInput && !ImGui::IsAnyItemActive();  // in a text field of ours
  if (walking_controls() && !typing) {
    if (!ImGui::IsKeyPressed(ImGuiKey_Escape)) return false;
    ImGui::SetNavCursorVisible(false);
    return true;
  }
  if (ImGui::IsAnyItemActive()) return false;  // Dear ImGui's own field reads them
  const ImGuiID ours = ImHashStr("keys of the program");
  for (const ImGuiKey key : walking_keys) ImGui::SetKeyOwner(key, ours);
  return false;
}

}  // namespace headscope
