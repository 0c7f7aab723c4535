#include "app/window/palette_overlay.h"

#include <imgui.h>

#include <algorithm>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

void PaletteOverlay::draw(Ui& ui, AppContext& app) {
  if (app.ui.palette) {
    app.ui.palette = false;
    items_ = palette_items(app);
    query_.clear();
    chosen_ = 0;
    hits_ = search_palette(items_, query_, most_hits);
    ImGui::OpenPopup("palette");
  }
  if (!begin_floating(ui, "palette", 620, 110)) {
    items_.clear();  // they hold on to results
    hits_.clear();
    return;
  }
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  if (input_line(ui, "##palette query", said("Search actions, heads, tokens, models, masks"), query_)) {
    chosen_ = 0;
    hits_ = search_palette(items_, query_, most_hits);
  }
  const int count = static_cast<int>(hits_.size());
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) ++chosen_;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) --chosen_;
  for (const ImGuiKey key : {ImGuiKey_DownArrow, ImGuiKey_UpArrow})
    ImGui::SetItemKeyOwner(key);  // the line stays focused
  const bool moved = ImGui::IsKeyPressed(ImGuiKey_DownArrow) || ImGui::IsKeyPressed(ImGuiKey_UpArrow);
  chosen_ = count == 0 ? 0 : std::clamp(chosen_, 0, count - 1);
  int picked =
      count > 0 && (ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter)) ? chosen_ : -1;
  if (count == 0) text_line(ui, said("Nothing is called that."), ui.theme.muted);
  ImGui::BeginChild("hits", {0, std::min(ui.px(30) * static_cast<float>(std::max(count, 1)), ui.px(380))});
  for (int i = 0; i < count; ++i) {
    const PaletteItem& item = items_[nth(hits_, i).item];
    ImGui::PushID(i);
    const std::string& title = item.shown.empty() ? item.title : item.shown;
    const std::string detail = !item.shown_detail.empty() ? item.shown_detail
                               : item.detail.empty()      ? said(item.group)
                                                          : item.detail;
    if (result_row(ui, title, detail, i == chosen_, item.title)) picked = i;
    if (i == chosen_ && moved) ImGui::SetScrollHereY();
    ImGui::PopID();
  }
  ImGui::EndChild();
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  if (picked >= 0) {
    const auto action = items_[nth(hits_, picked).item].run;
    ImGui::CloseCurrentPopup();
    if (action) action(app);
  }
  ImGui::EndPopup();
}

}  // namespace headscope
