#include "app/window/floating.h"

#include <imgui.h>

#include <algorithm>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/text_draw.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

bool begin_floating(const Ui& ui, const char* id, double width, double top) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const float across = std::min(ui.px(width), size.x - ui.px(32));
  ImGui::SetNextWindowPos({size.x / 2, std::min(ui.px(top), size.y * 0.2f)}, ImGuiCond_Always, {0.5f, 0});
  ImGui::SetNextWindowSize({across, 0});
  return ImGui::BeginPopup(id, ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
}

void draw_message(Ui& ui, AppContext& app) {
  const auto& message = app.explorer.jobs.message();
  if (!message) return;
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const float width = std::min(ui.px(640), size.x - ui.px(32));
  ImGui::SetNextWindowPos({size.x / 2, size.y - ui.px(20)}, ImGuiCond_Always, {0.5f, 1});
  ImGui::SetNextWindowSizeConstraints({width, 0}, {width, size.y / 2});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, vec(ui.chrome.raised));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  const bool error = message->level == Message::Level::error;
  ImGui::PushStyleColor(ImGuiCol_Border, vec(error ? ui.theme.key : ui.theme.line));
  ImGui::Begin("message", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoFocusOnAppearing);
  const float dismiss = button_width(ui, to_say("Dismiss"));
  paragraph(ui, message->text, ui.theme.text, width - dismiss - ui.px(32));
  ImGui::SameLine();
  ImGui::SetCursorPosX(width - dismiss - ui.px(12));
  if (button(ui, to_say("Dismiss"))) app.explorer.jobs.dismiss();
  ImGui::End();
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar();
}

bool result_row(const Ui& ui, const std::string& title, const std::string& detail, bool chosen,
                const std::string& english) {
  const float room = ImGui::GetContentRegionAvail().x, height = ui.px(26);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string& id = english.empty() ? title : english;
  const bool clicked = ImGui::Selectable(("##" + id).c_str(), chosen, 0, {room, height});
  ui.name(id, at, {at.x + room, at.y + height});
  const float baseline = at.y + height / 2 + ui.px(4.5);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const double logical = static_cast<double>(room / ui.scale);
  // What the title leaves is the detail's.
  const std::string name = elided(title, ui.body(), logical * 0.62, ui.fonts);
  const double left = logical - ui.fonts.width(name, ui.body()) - 8 - 20 - 8;
  draw_text(ui, draw, {{0, 0}, name, ui.body(), ui.theme.text, Anchor::start, 0}, {at.x + ui.px(8), baseline});
  draw_text(ui, draw,
            {{0, 0},
             elided(detail, ui.small(), left, ui.fonts),
             ui.small(),
             chosen ? ui.theme.muted : ui.theme.faint,
             Anchor::end,
             0},
            {at.x + room - ui.px(8), baseline});
  return clicked;
}

}  // namespace headscope
