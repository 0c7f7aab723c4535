#include "app/widgets/matrix_edit.h"

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/words.h"

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/text_draw.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double pixels_per_unit = 60;  // of a drag; a number above 1 moves in proportion to itself

/// What a drag of `pixels` upwards makes of a value: hundredths of its size, whole ones of large numbers.
double dragged(double from, double pixels, bool finely) {
  const double size = std::max(1.0, std::abs(from)), moved = pixels / pixels_per_unit * size * (finely ? 0.1 : 1);
  const double grain = size >= 10 && !finely ? 1 : size >= 10 ? 0.1 : finely ? 0.001 : 0.01;
  return std::clamp(std::round((from + moved) / grain) * grain, -MatrixEdit::largest, MatrixEdit::largest);
}

std::optional<double> read(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  const bool rest = std::string_view(end, text.data() + text.size()).find_first_not_of(' ') != std::string_view::npos;
  if (error != std::errc() || rest || !(std::abs(value) <= MatrixEdit::largest)) return std::nullopt;
  return value;
}

}  // namespace

bool MatrixEdit::draw(const Ui& ui, const char* name, Color role, Tensor& values) {
  const Index rows = values.dim(0), columns = values.dim(1);
  const float height = ui.px(22 * ui.theme.text_scale), left = ui.px(22), gap = ui.px(1);
  const float room = ImGui::GetContentRegionAvail().x - left;
  const float width = std::min(std::floor(room / static_cast<float>(columns)), ui.px(64));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const Font font = ui.number();
  const auto half = [&](const Font& f) { return static_cast<float>(half_capital(f)) * ui.scale; };
  draw_text(ui, draw, {{0, 0}, name, ui.strong(), role, Anchor::start, 0},
            {at.x, at.y + height / 2 + half(ui.strong())});
  double most = 0;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) most = std::max(most, std::abs(static_cast<double>(values.at(i, j))));

  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) held_.reset();
  std::optional<double> wanted;
  Index row = 0, column = 0;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      const ImVec2 from{at.x + left + width * static_cast<float>(j), at.y + (height + gap) * static_cast<float>(i)};
      const ImVec2 to{from.x + width - gap, from.y + height};
      const std::string cell = fmt::format("{} {} {}", name, i, j);
      const double value = static_cast<double>(values.at(i, j));
      ImGui::SetCursorScreenPos(from);
      if (typing_ == cell) {
        const UseFont use(ui, font);
        if (begin_) ImGui::SetKeyboardFocusHere();
        ImGui::SetNextItemWidth(width - gap);
        const bool entered = ImGui::InputText(("##" + cell).c_str(), &text_,
                                              ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
        const bool left_it = !std::exchange(begin_, false) && ImGui::IsItemDeactivated();
        if (entered || left_it) {
          // Escape leaves the number as it was.
          if (!ImGui::IsKeyPressed(ImGuiKey_Escape))
            if (const auto typed = read(text_)) wanted = typed, row = i, column = j;
          typing_.clear();
        }
        continue;
      }
      const bool pressed = pressable(cell.c_str(), {std::max(width - gap, 1.f), height}) && walking_controls();
      const bool hovered = ImGui::IsItemHovered(), own = held_ && held_->cell == cell;
      const Color fill = ui.theme.diverging->at(most > 0 ? 0.5 + 0.5 * value / most : 0.5);
      const Color ink = contrast(ui.theme.dark_ink, fill) > contrast(ui.theme.light_ink, fill) ? ui.theme.dark_ink
                                                                                               : ui.theme.light_ink;
      draw.AddRectFilled(from, to, col(fill), ui.px(2));
      if (hovered || own) draw.AddRect(from, to, col(own ? ui.theme.accent : ui.theme.text), ui.px(2), 0, ui.px(1));
      const std::string shown =
          elided(fmt::format("{:.4g}", value), font, static_cast<double>((width - gap) / ui.scale) - 2, ui.fonts);
      draw_text(ui, draw, {{0, 0}, shown, font, ink, Anchor::middle, 0},
                {(from.x + to.x) / 2, (from.y + to.y) / 2 + half(font)});
      if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
      if (hovered && !held_)
        tooltip(ui, {fmt::format("{} [{}, {}] = {:.6g}", name, i, j, value),
                     said("drag up or down, with Shift finely; double click: type")});
      if (pressed || (hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))) {
        typing_ = cell, text_ = fmt::format("{:.6g}", value), begin_ = true;
        held_.reset();
      } else if (ImGui::IsItemActivated() && !walking_controls()) {
        held_ = Held{cell, value, static_cast<double>(ImGui::GetMousePos().y)};
      } else if (own) {
        const double pixels = (held_->y - static_cast<double>(ImGui::GetMousePos().y)) / static_cast<double>(ui.scale);
        const double now = std::abs(pixels) < 3 ? held_->value : dragged(held_->value, pixels, ImGui::GetIO().KeyShift);
        if (static_cast<float>(now) != values.at(i, j)) wanted = now, row = i, column = j;
      }
    }
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({left + width * static_cast<float>(columns), (height + gap) * static_cast<float>(rows)});
  if (!wanted || static_cast<float>(*wanted) == values.at(row, column)) return false;
  values = values.copy();
  values.ref(row, column) = static_cast<float>(*wanted);
  return true;
}

}  // namespace headscope
