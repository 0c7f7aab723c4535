#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/widgets/controls.h"
#include "app/window/floating.h"
#include "app/window/pages.h"
#include "core/base/words.h"

namespace headscope {

void StepsPage::draw(Ui& ui, AppContext& app) {
  const bool asked = std::exchange(app.ui.steps, false);
  if (asked) ImGui::OpenPopup("steps");
  if (!begin_floating(ui, "steps", 520 * ui.theme.text_scale, 80)) return;
  const std::vector<std::string> steps = app.explorer.editor.steps();
  const std::size_t done = app.explorer.editor.history().undoable();
  section(ui, said("STEPS"), said("a click goes there; what is below the mark was undone"));
  const float row = ui.px(26);
  ImGui::BeginChild("list", {0, std::min(row * static_cast<float>(steps.size() + 1) + ui.px(8),
                                         ImGui::GetIO().DisplaySize.y * 0.6f)});
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(steps.size()) + 1, row);
  if (ImGui::IsWindowAppearing()) clipper.IncludeItemByIndex(static_cast<int>(done));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::string words = i == 0 ? said("The beginning") : steps[at - 1];
      const ImVec2 corner = ImGui::GetCursorScreenPos();
      const float room = ImGui::GetContentRegionAvail().x;
      ImGui::PushStyleColor(ImGuiCol_Text, vec(at <= done ? ui.theme.text : ui.theme.faint));
      const bool clicked = ImGui::Selectable(fmt::format("{}##{}", ui.fonts.laid_out(words), i).c_str(), at == done,
                                             ImGuiSelectableFlags_NoAutoClosePopups, {room, row - ui.px(4)});
      ImGui::PopStyleColor();
      ui.name(fmt::format("step {}", i), corner, {corner.x + room, corner.y + row - ui.px(4)});
      if (ImGui::IsWindowAppearing() && at == done) ImGui::SetScrollHereY();
      if (clicked) app.explorer.editor.go_to(at);
    }
  ImGui::EndChild();
  if (button(ui, to_say("Close")) || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

void Copying::draw(Ui& ui, AppContext& app) {
  if (!app.ui.copy) return;
  const bool collected = std::exchange(asked_, false);
  const auto put = [](const std::string& text) { ImGui::SetClipboardText(text.c_str()); };
  const Copy what = *app.ui.copy;
  const auto& all = ui.pictures.all;
  const double scale = std::max(1.0, static_cast<double>(ui.scale));
  if (app.ui.workspace == workspace_index("Explore")) {
    copy_view(app.explorer.jobs, app.explorer.state(), app.explorer.results(), what, scale,
              note_on_screen(app, {.dpi = 96 * scale, .for_print = false}), put);
  } else if (!collected) {  // the next frame tells what is on screen
    asked_ = ui.pictures.asked = *ui.animate = true;
    return;
  } else if (all.empty()) {
    app.explorer.jobs.tell(to_say("Nothing is drawn here yet."));
  } else {
    const ShownPicture& largest = *std::ranges::max_element(all, {}, &ShownPicture::area);
    copy_scene(app.explorer.jobs, app.explorer.state().view.theme,
               what == Copy::numbers ? largest.build : file_picture(app, largest), what, scale,
               note_on_screen(app, recipe_of(ui, app, &largest, {.dpi = 96 * scale, .for_print = false})), put);
  }
  app.ui.copy.reset();
}

}  // namespace headscope
