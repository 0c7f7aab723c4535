#include "app/widgets/paragraph.h"

#include <algorithm>

namespace headscope {

std::string broken_at_spaces(std::string_view text, double room, const std::function<double(std::string_view)>& width) {
  std::string out(text);
  std::size_t line = 0, space = std::string::npos;  // where the line begins, and its last space
  for (std::size_t i = 0; i <= out.size(); ++i) {
    if (i < out.size() && out[i] != ' ' && out[i] != '\n') continue;
    if (space != std::string::npos && width(std::string_view(out).substr(line, i - line)) > room) {
      out[space] = '\n';
      line = space + 1;
    }
    space = i;
    if (i < out.size() && out[i] == '\n') line = i + 1, space = std::string::npos;
  }
  return out;
}

void text_line(const Ui& ui, std::string_view text) {
  ui.wrote(text);
  const std::string_view shown = ui.fonts.laid_out(text);
  ImGui::TextUnformatted(shown.data(), shown.data() + shown.size());
}

void text_line(const Ui& ui, std::string_view text, Color color) {
  ImGui::PushStyleColor(ImGuiCol_Text, vec(color));
  text_line(ui, text);
  ImGui::PopStyleColor();
}

void paragraph(const Ui& ui, std::string_view text, Color color, float right) {
  const float room = right > 0 ? std::max(right - ImGui::GetCursorPosX(), ui.px(40)) : ImGui::GetContentRegionAvail().x;
  const std::string lines = broken_at_spaces(text, static_cast<double>(room), [&](std::string_view part) {
    const std::string_view shown = ui.fonts.laid_out(part);
    return static_cast<double>(ImGui::CalcTextSize(shown.data(), shown.data() + shown.size()).x);
  });
  ImGui::PushTextWrapPos(right);  // for a word that is wider than a line
  text_line(ui, lines, color);
  ImGui::PopTextWrapPos();
}

void note(const Ui& ui, std::string_view text) {
  paragraph(ui, text, ui.theme.muted);
}

void error_text(const Ui& ui, std::string_view text) {
  paragraph(ui, text, legible(ui.theme, rgb(0xF0616D)));
}

}  // namespace headscope
