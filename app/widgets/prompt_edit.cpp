#include "app/widgets/prompt_edit.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"

#include "app/widgets/keyboard.h"
#include "app/widgets/text_draw.h"
#include "viz/export/glyphs.h"

namespace headscope {

namespace {
constexpr double prompt_line_height = 19, padding_x = 11, padding_y = 8;
constexpr int least_lines = 3;

class FontLayout final : public TextLayout {
 public:
  FontLayout(const Fonts& fonts, const Font& font) : fonts_(fonts), font_(font) {}
  bool right_to_left(std::string_view paragraph) const override { return runs_right_to_left(paragraph); }
  std::vector<Part> parts(std::string_view line, bool right_to_left) const override {
    std::vector<Part> out;
    for (const Fonts::Part& part : fonts_.parts(line, font_, right_to_left))
      out.push_back({part.begin, part.end, part.width, part.right_to_left});
    return out;
  }

 private:
  const Fonts& fonts_;
  Font font_;
};
}  // namespace

/// What was typed and pressed in this frame. True when the text changed.
bool PromptEdit::keys() {
  ImGuiIO& io = ImGui::GetIO();
  const std::string before = edit_.text();
  const auto pressed = [](ImGuiKey key) { return ImGui::IsKeyPressed(key); };
  const bool select = io.KeyShift, word = io.KeyCtrl;
  if (pressed(ImGuiKey_LeftArrow)) edit_.left(word, select);
  if (pressed(ImGuiKey_RightArrow)) edit_.right(word, select);
  if (pressed(ImGuiKey_UpArrow)) edit_.up(select);
  if (pressed(ImGuiKey_DownArrow)) edit_.down(select);
  if (pressed(ImGuiKey_Home)) word ? edit_.move_to(0, select) : edit_.line_begin(select);
  if (pressed(ImGuiKey_End)) word ? edit_.move_to(edit_.text().size(), select) : edit_.line_end(select);
  if (pressed(ImGuiKey_Backspace)) edit_.erase_back(word);
  if (pressed(ImGuiKey_Delete)) edit_.erase_ahead(word);
  if (pressed(ImGuiKey_Enter) || pressed(ImGuiKey_KeypadEnter)) edit_.insert("\n");
  if (io.KeyCtrl && !io.KeyAlt) {
    if (pressed(ImGuiKey_A)) edit_.select_all();
    const bool cut = pressed(ImGuiKey_X);
    if ((cut || pressed(ImGuiKey_C)) && !edit_.selected().empty()) {
      ImGui::SetClipboardText(std::string(edit_.selected()).c_str());
      if (cut) edit_.erase_selection();
    }
    if (pressed(ImGuiKey_V))
      if (const char* text = ImGui::GetClipboardText()) edit_.insert(text);
  } else {
    for (const ImWchar c : io.InputQueueCharacters) {
      if (c < 32 || c == 127) continue;
      char bytes[5];
      ImTextCharToUtf8(bytes, c);
      edit_.insert(bytes);
    }
  }
  io.InputQueueCharacters.resize(0);
  return edit_.text() != before;
}

PromptTouch PromptEdit::draw(const Ui& ui, const char* id, const std::string& text, std::span<const TextMark> marks,
                             int most_lines, const char* hint) {
  PromptTouch touch;
  std::size_t caret_before = edit_.caret();
  if (edit_.text() != text) {
    edit_.set_text(text);
    if (!shown_) {  // its beginning is shown, and what is typed stands behind it
      edit_.move_to(text.size(), false);
      caret_before = edit_.caret();
    }
  }
  shown_ = true;
  const Font font = ui.body();
  ImFont* face = ui.fonts.face(font);
  const float size = ui.fonts.height(font), line = ui.px(prompt_line_height), room = ImGui::GetContentRegionAvail().x;
  const float width = std::max(room - 2 * ui.px(padding_x), ui.px(20));
  const auto wrap = [&] {
    const std::pair wanted{width, size};
    if (wrapped_ == edit_.text() && wrap_ == wanted) return;
    edit_.wrap(width, FontLayout(ui.fonts, font));
    wrapped_ = edit_.text();
    wrap_ = wanted;
  };
  wrap();

  if (focus_) active_ = true, focus_ = false;
  ImGuiContext& g = *ImGui::GetCurrentContext();
  // A popup above the field takes the keys; one that it stands in does not.
  const bool covered =
      !g.OpenPopupStack.empty() && g.OpenPopupStack.back().Window != ImGui::GetCurrentWindow()->RootWindow;
  if (active_ && covered) {
    active_ = false;
    touch.left = true;
  }
  if (active_) {
    g.WantTextInputNextFrame = 1;
    if (ImGui::IsKeyPressed(ImGuiKey_Escape) || ImGui::IsKeyPressed(ImGuiKey_Tab)) {
      active_ = false;
      touch.left = true;
    } else if (keys()) {
      touch.changed = true;
      wrap();
    }
  }

  const auto lines = static_cast<int>(edit_.lines().size());
  const float inner = line * static_cast<float>(std::clamp(lines, least_lines, std::max(most_lines, least_lines)));
  const float content = line * static_cast<float>(lines);
  const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + room, at.y + inner + 2 * ui.px(padding_y)};
  pressable(id, {room, end.y - at.y});
  const bool hovered = ImGui::IsItemHovered(), held = ImGui::IsItemActive();
  const ImGuiIO& io = ImGui::GetIO();
  const bool reached = walking_controls() && ImGui::IsItemFocused();  // by Tab: typing begins, as in other fields
  if (reached && !reached_) active_ = true;
  reached_ = reached;
  if (content > inner) {
    if (hovered) {
      ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
      scroll_ -= io.MouseWheel * 2 * line;
    }
  }
  const ImVec2 corner{at.x + ui.px(padding_x), at.y + ui.px(padding_y)};
  const auto offset_under = [&](ImVec2 p) {
    const float row = std::floor((p.y - corner.y + scroll_) / line);
    if (row < 0) return std::size_t{0};
    if (row >= static_cast<float>(lines)) return edit_.text().size();
    return edit_.offset_at(static_cast<std::size_t>(row), p.x - corner.x);
  };
  if (hovered) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
    const float row = std::floor((io.MousePos.y - corner.y + scroll_) / line);
    if (row >= 0 && row < static_cast<float>(lines))
      touch.hovered = edit_.character_at(static_cast<std::size_t>(row), io.MousePos.x - corner.x);
  }
  if (ImGui::IsItemActivated() && hovered) {
    active_ = true;
    edit_.move_to(offset_under(io.MousePos), io.KeyShift);
    if (ImGui::GetMouseClickedCount(ImGuiMouseButton_Left) == 2) edit_.select_word(edit_.caret());
    if (ImGui::GetMouseClickedCount(ImGuiMouseButton_Left) >= 3) edit_.select_all();
  } else if (held && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2)) {
    edit_.move_to(offset_under(io.MousePos), true);
  } else if (active_ && !hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    active_ = false;
    touch.left = true;
  }
  const TextEdit::Place place = edit_.place(edit_.caret());
  if (edit_.caret() != caret_before) {  // the caret stays in sight
    const float top = line * static_cast<float>(place.line);
    scroll_ = std::clamp(scroll_, top + line - inner, top);
  }
  scroll_ = std::clamp(scroll_, 0.f, std::max(0.f, content - inner));

  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float radius = ui.px(6);
  draw.AddRectFilled(at, end, col(ui.chrome.raised), radius);
  draw.AddRect(at, end, col(active_ ? ui.theme.accent : ui.chrome.border), radius);
  ImGui::PushClipRect({at.x + 1, at.y + 1}, {end.x - 1, end.y - 1}, true);
  if (edit_.text().empty() && !active_)
    draw_text(ui, draw, {{0, 0}, hint, font, ui.theme.faint, Anchor::start, 0},
              {corner.x, corner.y + (line - size) / 2 + ui.fonts.ascent(font)});
  const auto [from, to] = edit_.selection();
  for (int i = static_cast<int>(scroll_ / line); i < lines; ++i) {
    const TextEdit::Line& row = nth(edit_.lines(), i);
    const float y = corner.y + line * static_cast<float>(i) - scroll_;
    if (y > end.y) break;
    const auto stretch = [&](std::size_t begin, std::size_t finish, Color ground, Color underline) {
      const auto inside = [&](const TextEdit::Part& part) { return part.begin < finish && part.end > begin; };
      // Where scripts of both directions meet, neighbours in the text may stand apart in the line.
      for (auto part = row.parts.begin(); part != row.parts.end();) {
        part = std::find_if(part, row.parts.end(), inside);
        if (part == row.parts.end()) return;
        const float x0 = corner.x + part->left;
        while (std::next(part) != row.parts.end() && inside(*std::next(part))) ++part;
        const float x1 = std::min(corner.x + part->right, end.x - ui.px(2));
        ++part;
        if (ground.a) draw.AddRectFilled({x0, y}, {x1, y + line - 1}, col(ground), ui.px(2));
        if (underline.a)
          draw.AddRectFilled({x0 + 1, y + line - ui.px(2.5)}, {std::max(x1 - 1, x0 + 2), y + line - ui.px(1)},
                             col(underline));
      }
    };
    for (const TextMark& mark : marks) stretch(mark.begin, mark.end, mark.ground, mark.underline);
    if (active_) stretch(from, to, with_opacity(ui.theme.accent, 0.35), {0, 0, 0, 0});
    const std::string_view text_of_row = std::string_view(edit_.text()).substr(row.begin, row.end - row.begin);
    const std::string_view shown = ui.fonts.laid_out(text_of_row, font, row.right_to_left);
    const float left = row.parts.empty() ? 0 : row.parts.front().left;
    face->RenderText(&draw, size, {corner.x + left, y + (line - size) / 2}, col(ui.theme.text),
                     {at.x, at.y, end.x, end.y}, shown.data(), shown.data() + shown.size());
  }
  if (active_) {
    const ImVec2 caret{std::min(corner.x + place.x, end.x - ui.px(3)),
                       corner.y + line * static_cast<float>(place.line) - scroll_};
    draw.AddRectFilled({caret.x, caret.y + 1}, {caret.x + std::max(1.f, ui.px(1.5)), caret.y + line - 1},
                       col(ui.theme.accent));
    ImGuiPlatformImeData& input = g.PlatformImeData;  // where an input method puts its window
    input.WantVisible = input.WantTextInput = true;
    input.InputPos = caret;
    input.InputLineHeight = line;
    input.ViewportId = ImGui::GetCurrentWindow()->Viewport->ID;
  }
  if (content > inner) {
    const float whole = end.y - at.y - ui.px(8), bar = whole * inner / content;
    const float y = at.y + ui.px(4) + (whole - bar) * scroll_ / (content - inner);
    draw.AddRectFilled({end.x - ui.px(6), y}, {end.x - ui.px(3), y + bar}, col(ui.theme.line), ui.px(2));
  }
  ImGui::PopClipRect();
  return touch;
}

}  // namespace headscope
