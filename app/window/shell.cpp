#include "app/window/shell.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/nth.h"

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "core/base/words.h"

namespace headscope {

namespace {

constexpr double bar_height = 44;

/// Text in a row of height `height`, centred on it; moves the cursor to its right.
void bar_text(const Ui& ui, float y, float height, const std::string& text, const Font& font, Color color) {
  const UseFont use(ui, font);
  ImGui::SetCursorPosY(y + (height - ImGui::GetTextLineHeight()) / 2);
  text_line(ui, text, color);
}

/// One tab, `width` window pixels wide; true when it was clicked.
bool workspace_tab(Ui& ui, const ShellWorkspace& entry, bool chosen, float width, float height) {
  Font font = ui.body();
  font.weight = chosen ? 600 : 400;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::BeginDisabled(!entry.enabled);
  const bool clicked = pressable(entry.title.c_str(), {width, height});
  ImGui::EndDisabled();
  const bool hovered = ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled);
  if (hovered && !entry.enabled && !entry.why_not.empty()) tooltip(ui, {entry.why_not});
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const Color color = !entry.enabled ? ui.theme.faint : chosen || hovered ? ui.theme.text : ui.theme.muted;
  draw_text(ui, *draw, {{0, 0}, said(entry.title), font, color, Anchor::middle, 0},
            {at.x + width / 2, at.y + height / 2 + static_cast<float>(0.36 * font.size) * ui.scale});
  if (chosen)
    draw->AddRectFilled({at.x, at.y + height - ui.px(2)}, {at.x + width, at.y + height}, col(ui.theme.accent), 1);
  return clicked;
}

/// What each tab's words take; a tab keeps its width when it is chosen.
std::vector<float> tab_widths(const Ui& ui, const ShellContent& content) {
  Font widest = ui.body();
  widest.weight = 600;
  std::vector<float> text;
  for (const ShellWorkspace& each : content.workspaces)
    text.push_back(static_cast<float>(ui.fonts.width(said(each.title), widest)) * ui.scale);
  return text;
}
constexpr double tab_padding = 28, least_tab_padding = 14;

/// Tabs up to `right`: closer together where they would not fit, and the last ones in a menu where even that is not
/// enough.
void workspace_tabs(Ui& ui, const ShellContent& content, float height, float right, ShellEvents& events) {
  const float top = ImGui::GetCursorPosY(), room = right - ImGui::GetCursorPosX();
  const int count = static_cast<int>(content.workspaces.size());
  const std::vector<float> text = tab_widths(ui, content);
  const auto total = [&](float padding) {
    return std::accumulate(text.begin(), text.end(), padding * static_cast<float>(count));
  };
  float padding = ui.px(tab_padding);
  if (total(padding) > room)
    padding = std::max(ui.px(least_tab_padding), (room - total(0)) / static_cast<float>(std::max(count, 1)));
  const float more = button_width(ui, to_say("more ▾")) + ui.px(8);
  const bool all = total(padding) <= room + 1;
  // The chosen one is always in sight.
  std::vector<int> hidden;
  float used =
      all || content.workspace < 0 || content.workspace >= count ? 0 : nth(text, content.workspace) + padding + more;
  for (int i = 0; i < count; ++i) {
    const float width = nth(text, i) + padding;
    const bool chosen = i == content.workspace;
    if (!all && !chosen && (used += width) > room) {
      hidden.push_back(i);
      continue;
    }
    ImGui::SetCursorPosY(top);  // SameLine() goes back to the top of the line, which lies elsewhere
    if (workspace_tab(ui, nth(content.workspaces, i), chosen, width, height)) events.workspace = i;
    ImGui::SameLine(0, 0);
  }
  if (hidden.empty()) return;
  ImGui::SetCursorPosY(top + (height - ui.px(30)) / 2);
  if (button(ui, to_say("more ▾"), ui.px(30))) ImGui::OpenPopup("more workspaces");
  if (ImGui::BeginPopup("more workspaces")) {
    for (const int i : hidden) {
      const ShellWorkspace& entry = nth(content.workspaces, i);
      if (menu_item(ui, entry.title.c_str(), nullptr, false, entry.enabled)) events.workspace = i;
    }
    ImGui::EndPopup();
  }
  ImGui::SameLine(0, 0);
}

/// As much of the status as there is room for beside the tabs; its first numbers matter most.
void status_line(Ui& ui, const ShellContent& content, float y, float height, float right) {
  const auto font_of = [&](bool number) { return number ? ui.number() : ui.body(); };
  auto shown = content.status;
  const float room = right - ImGui::GetCursorPosX() - ui.px(12);
  const auto width = [&] {
    double sum = 0;
    for (const auto& [text, number] : shown) sum += ui.fonts.width(text, font_of(number));
    return static_cast<float>(sum) * ui.scale;
  };
  while (!shown.empty() && width() > room) {
    shown.pop_back();
    while (!shown.empty() && !shown.back().second) shown.pop_back();  // what was said of a number that is gone
  }
  ImGui::SetCursorPosX(right - width());
  for (const auto& [text, number] : shown) {
    bar_text(ui, y, height, text, font_of(number), number ? ui.theme.text : ui.theme.muted);
    ImGui::SameLine(0, 0);
  }
}

ShellEvents top_bar(Ui& ui, const ShellContent& content) {
  ShellEvents events;
  const ImVec2 size{ImGui::GetIO().DisplaySize.x, ui.px(bar_height)};
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(ui.chrome.bar));
  ImGui::BeginChild("top bar", size, ImGuiChildFlags_NavFlattened,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleColor();
  const ImVec2 corner = ImGui::GetWindowPos();
  const float frame = ui.px(30), middle = (size.y - frame) / 2;

  ImGui::SetCursorPosX(ui.px(16));
  bar_text(ui, 0, size.y, "Headscope", ui.strong(), ui.theme.text);
  ImGui::SameLine(0, ui.px(18));
  ImGui::SetCursorPosY(middle);
  const bool open = !content.model.name.empty();
  if (menu_button(ui, "Model", open ? content.model.name : said("Open a model"), content.model.details, frame) ||
      content.open_model_menu)
    ImGui::OpenPopup("model menu");
  if (content.model_menu) {
    ImGui::SetNextWindowPos({corner.x + ui.px(100), corner.y + size.y}, ImGuiCond_Appearing);
    if (ImGui::BeginPopup("model menu")) {
      content.model_menu(ui);
      ImGui::EndPopup();
    }
  }
  ImGui::SameLine(0, ui.px(content.badge ? 6 : 16));
  const float export_width = button_width(ui, to_say("Export ▾")), palette_width = button_width(ui, to_say("Ctrl K"));
  const float export_x = size.x - ui.px(16) - export_width, palette_x = export_x - ui.px(12) - palette_width;
  float status_end = palette_x - ui.px(16);
  if (content.badge) {
    // In few words where all tabs would not find room beside more of them.
    const std::vector<float> tabs = tab_widths(ui, content);
    const float needed =
        std::accumulate(tabs.begin(), tabs.end(), ui.px(least_tab_padding + 6) * static_cast<float>(tabs.size()));
    const float room = status_end - ImGui::GetCursorPosX() - ui.px(10);
    ImGui::SetCursorPosY(middle);
    events.badge = model_badge(ui, *content.badge, needed + model_badge_width(ui, *content.badge, false) > room, frame);
    ImGui::SameLine(0, ui.px(10));
  }
  ImGui::SetCursorPosY(0);
  const bool stop = content.stoppable && content.stop;
  const char* offered = stop ? to_say("Stop") : content.again ? to_say("Run again") : nullptr;
  const float offered_width = offered ? button_width(ui, offered) : 0;
  workspace_tabs(ui, content, size.y, status_end - (offered ? offered_width + ui.px(12) : 0.f), events);
  const float tabs_end = ImGui::GetCursorPosX();
  if (offered) {
    ImGui::SetCursorPos({status_end - offered_width, middle});
    if (button(ui, offered, frame)) stop ? content.stop() : content.again();
    if (!stop && ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(ui, {said("What was stopped runs once more (F5)")});
    status_end -= offered_width + ui.px(12);
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(tabs_end);
  }
  status_line(ui, content, 0, size.y, status_end);
  ImGui::SetCursorPos({palette_x, middle});
  if (button(ui, to_say("Ctrl K"), frame)) events.palette = true;
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(ui, {said("Find any action, head, token or model")});
  ImGui::SetCursorPos({export_x, middle});
  ImGui::BeginDisabled(!content.export_menu);
  if (button(ui, to_say("Export ▾"), frame)) ImGui::OpenPopup("export menu");
  ImGui::EndDisabled();
  if (content.export_menu) {
    ImGui::SetNextWindowPos({corner.x + size.x - ui.px(12), corner.y + size.y}, ImGuiCond_Appearing, {1, 0});
    if (ImGui::BeginPopup("export menu")) {
      content.export_menu(ui);
      ImGui::EndPopup();
    }
  }
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float bottom = corner.y + size.y;
  draw->AddRectFilled({corner.x, bottom - 1}, {corner.x + size.x, bottom}, col(ui.theme.line));
  if (content.progress >= 0)
    draw->AddRectFilled({corner.x, bottom - ui.px(2)},
                        {corner.x + size.x * static_cast<float>(std::clamp(content.progress, 0.0, 1.0)), bottom},
                        col(ui.theme.accent));
  ImGui::EndChild();
  return events;
}

/// A border between columns that can be dragged; `toward` > 0: dragging right makes the column wider, by
/// that much for a pixel. A child
/// window of its own, since the columns on both sides would take the pointer from a plain item.
void splitter(const Ui& ui, const char* id, float x, float y, float height, double toward, double& width) {
  const float reach = ui.px(4);
  ImGui::SetCursorScreenPos({x - reach, y});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::BeginChild(id, {2 * reach, height}, ImGuiChildFlags_None,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoBackground);
  ImGui::PopStyleVar();
  ImGui::InvisibleButton(id, {2 * reach, height});
  const bool active = ImGui::IsItemActive(), hovered = ImGui::IsItemHovered();
  // From where it was taken hold of: past a limit and back again the border meets the pointer where it left it.
  ImGuiStorage& held = *ImGui::GetStateStorage();
  const ImGuiID taken = ImGui::GetID("width when taken");
  if (ImGui::IsItemActivated()) held.SetFloat(taken, static_cast<float>(width));
  if (active) {
    const ImGuiIO& io = ImGui::GetIO();
    const float moved = (io.MousePos.x - io.MouseClickedPos[0].x) / ui.scale;
    width = std::clamp(static_cast<double>(held.GetFloat(taken)) + toward * static_cast<double>(moved),
                       ShellLayout::least_side, ShellLayout::most_side);
  }
  if (active || hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  ImGui::GetWindowDrawList()->AddRectFilled({x, y}, {x + (active || hovered ? ui.px(2) : 1.f), y + height},
                                            col(active || hovered ? ui.theme.accent : ui.theme.line));
  ImGui::EndChild();
}

void column(Ui& ui, const char* id, float x, float y, float width, float height, const std::function<void(Ui&)>& draw) {
  if (width < 1) return;
  ImGui::SetCursorScreenPos({x, y});
  // What just does not fit gets a scroll bar, is drawn narrower beside it, hence lower, and then fits: so a bar that is
  // there stays until there is room to spare. Else the column would change its width, and its pictures, for ever.
  ImGuiStorage& kept = *ImGui::GetStateStorage();
  const ImGuiID key = ImGui::GetID(id);
  const bool keeps_bar = kept.GetBool(key);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(16), ui.px(14)});
  ImGui::BeginChild(id, {width, height}, ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened,
                    keeps_bar ? ImGuiWindowFlags_AlwaysVerticalScrollbar : 0);
  ImGui::PopStyleVar();
  if (draw) draw(ui);
  kept.SetBool(key, (keeps_bar || ImGui::GetScrollMaxY() > 0) && ImGui::GetCursorPosY() > height - ui.px(60));
  ImGui::EndChild();
}

}  // namespace

ShellEvents draw_shell(Ui& ui, const ShellContent& content, ShellLayout& layout) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::Begin("shell", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNavFocus);
  ImGui::PopStyleVar(3);
  const ShellEvents events = content.presenting ? ShellEvents{} : top_bar(ui, content);

  const float y = content.presenting ? 0 : ui.px(bar_height), height = size.y - y;
  // Large type needs wider columns, and a very wide window has room for them.
  const double stretch = ui.theme.text_scale * std::clamp(static_cast<double>(size.x / ui.scale) / 1800, 1.0, 1.5);
  const auto fitted = [&](double& width, bool open) {
    width = std::clamp(width, ShellLayout::least_side, ShellLayout::most_side);
    return open ? ui.px(stretch * width) : 0.f;
  };
  constexpr double lesson_width = 340;
  const float lesson = !content.lesson      ? 0.f
                       : content.presenting ? std::floor(size.x * (content.few_words     ? 0.22f
                                                                   : content.keeps_right ? 0.3f
                                                                                         : 0.36f))
                                            : ui.px(stretch * lesson_width);
  float left = fitted(layout.left, layout.left_open && !content.presenting),
        right = fitted(layout.right,
                       (layout.right_open && !content.presenting) || (content.presenting && content.keeps_right));
  // Presented beside a panel that is worked in, the picture may be smaller.
  const float least_middle =
      content.presenting ? size.x * 0.38f : ui.px(ShellLayout::least_middle * ui.theme.text_scale);
  const bool shared =
      lesson > 0 &&
      (content.presenting ? content.keeps_right : layout.left_open && lesson + left + right > size.x - least_middle);
  if (shared) left = 0;
  // A narrow window takes from both sides before it takes from the picture in the middle.
  if (const float room = size.x - lesson - least_middle; left + right > room && left + right > 0) {
    const float share = std::max(room, 0.f) / (left + right);
    left = std::max(left * share, left > 0 ? ui.px(200) : 0.f);
    right = std::max(right * share, right > 0 ? ui.px(200) : 0.f);
    left = static_cast<float>(static_cast<int>(left)), right = static_cast<float>(static_cast<int>(right));
  }
  const auto first = [&](Ui& inner) {
    if (shared) {
      static constexpr const char* sides[] = {to_say("Lesson"), to_say("Panel")};
      int side = layout.left_over_lesson ? 1 : 0;
      if (segmented(inner, "lesson or panel", sides, side)) layout.left_over_lesson = side == 1;
      ImGui::Dummy({0, inner.px(6)});
    }
    const auto& draw = shared && layout.left_over_lesson ? content.left : content.lesson;
    if (draw) draw(inner);
  };
  column(ui, "lesson", 0, y, lesson, height, first);
  if (lesson > 0) ImGui::GetWindowDrawList()->AddRectFilled({lesson - 1, y}, {lesson, y + height}, col(ui.theme.line));
  column(ui, "left", lesson, y, left, height, content.left);
  column(ui, "middle", lesson + left, y, size.x - lesson - left - right, height, content.middle);
  column(ui, "right", size.x - right, y, right, height, content.right);
  if (left > 0) splitter(ui, "left border", lesson + left, y, height, 1 / stretch, layout.left);
  if (right > 0) splitter(ui, "right border", size.x - right - 1, y, height, -1 / stretch, layout.right);
  ImGui::End();
  return events;
}

}  // namespace headscope
