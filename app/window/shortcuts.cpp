#include "app/window/shortcuts.h"

#include <imgui.h>

#include <algorithm>
#include <string>
#include <utility>

#include "app/actions/shortcut_words.h"
#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/window/floating.h"
#include "core/base/words.h"

namespace headscope {

namespace {

struct NamedKey {
  ImGuiKey key;
  const char* name;
};
constexpr NamedKey named_keys[] = {
    {ImGuiKey_LeftArrow, "Left"}, {ImGuiKey_RightArrow, "Right"}, {ImGuiKey_UpArrow, "Up"},
    {ImGuiKey_DownArrow, "Down"}, {ImGuiKey_Home, "Home"},        {ImGuiKey_End, "End"},
    {ImGuiKey_Escape, "Escape"},  {ImGuiKey_Enter, "Enter"},      {ImGuiKey_Space, "Space"}};

}  // namespace

void run_shortcuts(AppContext& app) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel)) return;
  const bool walking = walking_controls() && !io.KeyCtrl && !io.KeyAlt;
  if (share_keys()) return;
  const auto press = [&](std::string key, bool shift) {
    const Shortcut shortcut{io.KeyCtrl, shift, io.KeyAlt, std::move(key)};
    if (io.WantTextInput && !shortcut.while_typing()) return;
    if (const Action* action = action_for(shortcut); action && action->is_enabled(app)) action->run(app);
  };
  const bool arrows_taken = std::exchange(app.ui.arrows_taken, false) && !io.KeyShift && !io.KeyCtrl && !io.KeyAlt;
  const bool sideways_taken = std::exchange(app.ui.sideways_taken, false) && !io.KeyShift && !io.KeyCtrl && !io.KeyAlt;
  for (const NamedKey& named : named_keys) {
    if (walking) break;  // they belong to the control that Tab has reached
    if (sideways_taken && (named.key == ImGuiKey_LeftArrow || named.key == ImGuiKey_RightArrow)) continue;
    if (arrows_taken && (named.key == ImGuiKey_UpArrow || named.key == ImGuiKey_DownArrow)) continue;
    if (ImGui::IsKeyPressed(named.key)) press(named.name, io.KeyShift);
  }
  // A letter switches something: held, it must not switch back. Undo may repeat.
  for (int i = 0; i < 26; ++i)
    if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(ImGuiKey_A + i), io.KeyCtrl))
      press(std::string(1, static_cast<char>('A' + i)), io.KeyShift);
  for (int i = 0; i < 10; ++i)
    if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(ImGuiKey_0 + i)))
      press(std::string(1, static_cast<char>('0' + i)), io.KeyShift);
  for (int i = 0; i < 12; ++i)
    if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(ImGuiKey_F1 + i), false))
      press("F" + std::to_string(i + 1), io.KeyShift);
  for (const auto& [key, sign] : {std::pair{ImGuiKey_Equal, "+"},
                                  {ImGuiKey_KeypadAdd, "+"},
                                  {ImGuiKey_Minus, "-"},
                                  {ImGuiKey_Comma, ","},
                                  {ImGuiKey_KeypadSubtract, "-"}})
    if (io.KeyCtrl && ImGui::IsKeyPressed(key)) press(sign, false);
  // Signs lie on other keys in other countries: what was typed counts, not where.
  if (!io.WantTextInput)
    for (const ImWchar c : io.InputQueueCharacters)
      if (c == '?' || c == '[' || c == ']' || c == '+' || c == '-') press(std::string(1, static_cast<char>(c)), false);
}

void draw_keys(Ui& ui, AppContext& app) {
  if (app.ui.keys) {
    app.ui.keys = false;
    ImGui::OpenPopup("keys");
  }
  if (!begin_floating(ui, "keys", 520, 80)) return;
  ImGui::BeginChild("list", {0, std::min(ui.px(620), ImGui::GetIO().DisplaySize.y * 0.7f)});
  std::string group;
  for (const Action& action : actions()) {
    if (action.shortcut.empty()) continue;
    if (action.group != group) section(ui, said(group = action.group));
    fact(ui, action.shown(), shown_shortcut(action.shortcut));
  }
  ImGui::EndChild();
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace headscope
