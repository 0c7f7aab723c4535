#include "app/widgets/catalogue.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/nth.h"
#include "core/base/words.h"

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80;
}

bool begins_a_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (at == 0 || !in_word(text[at - 1]) || !in_word(text[at])) return true;
  return false;
}

/// One row; true when it was clicked.
bool row(const Ui& ui, const CatalogueEntry& entry, bool chosen) {
  const float width = ImGui::GetContentRegionAvail().x, height = ui.px(25 * ui.theme.text_scale);
  const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + width, at.y + height};
  ImGui::PushID(entry.id.c_str());
  const bool clicked = pressable(entry.title.c_str(), {std::max(width, 1.f), height});
  ImGui::PopID();
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (chosen || hovered) draw->AddRectFilled(at, end, col(chosen ? ui.chrome.selected : ui.chrome.hovered), ui.px(4));
  const Font font = ui.body();
  const double room = static_cast<double>(width / ui.scale) - 16;
  const std::string title = said(entry.title), shown = elided(title, font, room, ui.fonts);
  draw_text(ui, *draw, {{0, 0}, shown, font, chosen || hovered ? ui.theme.text : ui.theme.muted, Anchor::start, 0},
            {at.x + ui.px(8), at.y + height / 2 + static_cast<float>(half_capital(font)) * ui.scale});
  if (hovered && shown != title) tooltip(ui, {title});
  return clicked;
}

}  // namespace

bool finds(const CatalogueEntry& entry, std::string_view query) {
  const std::string text = lower(entry.title + " " + said(entry.title) + " " + entry.words), wanted = lower(query);
  for (std::size_t at = 0; at < wanted.size();) {
    const std::size_t end = std::min(wanted.find(' ', at), wanted.size());
    if (end > at && !begins_a_word(text, wanted.substr(at, end - at))) return false;
    at = end + 1;
  }
  return true;
}

bool Catalogue::draw(const Ui& ui, const char* id, std::span<const CatalogueGroup> groups, std::string& chosen) {
  const std::string before = chosen;
  ImGui::PushID(id);
  if (std::exchange(focus_, false)) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  const bool typed = input_line(ui, "##search", said("Search"), query_);
  const bool searching = ImGui::IsItemActive();
  if (searching)
    for (const ImGuiKey key : {ImGuiKey_DownArrow, ImGuiKey_UpArrow}) ImGui::SetItemKeyOwner(key);  // they choose below
  const bool taken = ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Enter);
  if (searching && ImGui::IsKeyPressed(ImGuiKey_Escape)) query_.clear();

  std::vector<const CatalogueEntry*> shown;
  for (const CatalogueGroup& group : groups)
    for (const CatalogueEntry& entry : group.entries)
      if (finds(entry, query_)) shown.push_back(&entry);
  const auto present = [&] { return std::ranges::find(shown, chosen, [](const auto* e) { return e->id; }); };
  if (taken && !query_.empty() && !shown.empty() && (typed || present() == shown.end())) chosen = shown.front()->id;
  if (((takes_arrows_ && !walking_controls()) || searching) && !shown.empty() &&
      !ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopup)) {
    const int step =
        (ImGui::IsKeyPressed(ImGuiKey_DownArrow) ? 1 : 0) - (ImGui::IsKeyPressed(ImGuiKey_UpArrow) ? 1 : 0);
    if (step != 0 && (searching || !ImGui::GetIO().WantTextInput)) {
      const auto at = present();
      const auto count = static_cast<std::ptrdiff_t>(shown.size());
      const auto next = at == shown.end() ? 0 : std::clamp<std::ptrdiff_t>(at - shown.begin() + step, 0, count - 1);
      chosen = nth(shown, next)->id;
      follow_ = true;
    }
  }

  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, ui.px(1)});
  bool clicked = false;
  for (const CatalogueGroup& group : groups) {
    const bool any = std::ranges::any_of(group.entries, [&](const auto& entry) { return finds(entry, query_); });
    if (!any) continue;
    ImGui::Dummy({0, ui.px(8)});
    section(ui, said(group.title));
    ImGui::Dummy({0, ui.px(2)});
    for (const CatalogueEntry& entry : group.entries) {
      if (!finds(entry, query_)) continue;
      if (row(ui, entry, entry.id == chosen)) chosen = entry.id, clicked = true;
      if (follow_ && entry.id == chosen) {
        if (!ImGui::IsItemVisible()) ImGui::SetScrollHereY(0.5f);
        follow_ = false;
      }
    }
  }
  ImGui::PopStyleVar();
  if (shown.empty()) {
    ImGui::Dummy({0, ui.px(8)});
    section(ui, "", said("nothing is called that"));
  }
  ImGui::PopID();
  if (clicked || searching)
    takes_arrows_ = true;
  else if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && !ImGui::IsWindowHovered())
    takes_arrows_ = false;
  return chosen != before;
}

}  // namespace headscope
