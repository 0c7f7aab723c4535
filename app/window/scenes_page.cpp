#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "app/window/pages.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double page_width = 640, scene_height = 34;

/// A button with a name of its own for tests, and words for who rests on it.
bool named_button(const Ui& ui, const char* label, const std::string& name, const std::string& words = "") {
  const bool pressed = button(ui, label, ImGui::GetFrameHeight());
  ui.name(name, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (!words.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(ui, {words});
  return pressed;
}

/// A line that is taken over when it is left or Enter is pressed, and not before.
bool written(const Ui& ui, const char* id, const char* hint, std::string& text) {
  input_line(ui, id, hint, text);
  return ImGui::IsItemDeactivatedAfterEdit();
}

void present(AppContext& app, std::size_t step, bool large) {
  app.explorer.scenes.present(step, [&ui = app.ui, large] { ui.presenting = ui.presenting || large; });
  ImGui::CloseCurrentPopup();
}

}  // namespace

/// What is written in the lines goes with the list as it was read.
void ScenesPage::follow(const SceneList& scenes) {
  if (of_ == scenes.pages()) return;
  of_ = scenes.pages();
  title_ = head_value(of_, "title");
  names_.clear();
  for (const std::string& each : of_.steps) names_.push_back(step_title(each));
}

/// The panel has gone (another one took its place): what was being written is kept, as where its line is left.
void ScenesPage::leave(SceneList& scenes) {
  if (names_.empty()) return;
  const LessonPages was = std::exchange(of_, {});
  const std::vector<std::string> names = std::exchange(names_, {});
  if (was != scenes.pages()) return;  // taken over already, or another list
  if (title_ != head_value(was, "title")) scenes.rename_list(title_);
  for (std::size_t step = 0; step < names.size(); ++step)
    if (names[step] != step_title(was.steps[step])) scenes.rename(step, names[step]);
}

/// The list's title, and the others that there are.
void ScenesPage::which(Ui& ui, AppContext& app) {
  SceneList& scenes = app.explorer.scenes;
  const float lists = button_width(ui, to_say("Other lists ▾"));
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - lists - ui.px(8));
  ImGui::BeginDisabled(of_.steps.empty());  // a list is a file as soon as there is something on it
  if (written(ui, "##scene list title", said("what the list is called"), title_))
    scenes.rename_list(title_), of_ = {};  // what does not become the title does not stay in its line
  ImGui::EndDisabled();
  ImGui::SameLine(0, ui.px(8));
  if (button(ui, to_say("Other lists ▾"), ImGui::GetFrameHeight())) ImGui::OpenPopup("scene lists");
  if (!ImGui::BeginPopup("scene lists")) return;
  std::string wanted;
  for (const std::string& id : scenes.others())
    if (ImGui::MenuItem(id.c_str(), nullptr, id == scenes.id())) wanted = id;
  if (!scenes.others().empty()) ImGui::Separator();
  if (menu_item(ui, to_say("A new list"))) wanted = scenes.unused_id();
  if (!wanted.empty()) {
    scenes.use(wanted);
    app.settings.scene_list = wanted;
    app.ui.settings_changed = true;
  }
  ImGui::EndPopup();
}

void ScenesPage::row(Ui& ui, AppContext& app, std::size_t step) {
  SceneList& scenes = app.explorer.scenes;
  const float gap = ui.px(6), number = ui.px(24 * ui.theme.text_scale);
  float buttons = 0;
  for (const char* label : {to_say("Show"), "↑", "↓", "×"}) buttons += button_width(ui, label) + gap;
  const std::string at = std::to_string(step + 1);
  ImGui::PushID(static_cast<int>(step));
  ImGui::AlignTextToFramePadding();
  const float left = ImGui::GetCursorPosX(), room = ImGui::GetContentRegionAvail().x;
  text_line(ui, at, ui.theme.faint);
  ImGui::SameLine(left + number);
  ImGui::SetNextItemWidth(room - number - buttons);
  const bool renamed = written(ui, "##scene title", said("what it is called"), names_[step]);
  ui.name("title of scene " + at, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  ImGui::SameLine(0, gap);
  const bool show = named_button(ui, to_say("Show"), "show scene " + at, said("Back to this state"));
  ImGui::SameLine(0, gap);
  ImGui::BeginDisabled(step == 0);
  const bool up = named_button(ui, "↑", "scene up " + at, said("Earlier"));
  ImGui::EndDisabled();
  ImGui::SameLine(0, gap);
  ImGui::BeginDisabled(step + 1 == names_.size());
  const bool down = named_button(ui, "↓", "scene down " + at, said("Later"));
  ImGui::EndDisabled();
  ImGui::SameLine(0, gap);
  const bool remove = named_button(ui, "×", "remove scene " + at, said("Take it off the list; Undo brings it back"));
  ImGui::PopID();
  if (renamed) scenes.rename(step, names_[step]), of_ = {};
  if (up) scenes.move(step, -1);
  if (down) scenes.move(step, 1);
  if (remove) scenes.remove(step);
  if (show) present(app, step, false);
}

void ScenesPage::draw(Ui& ui, AppContext& app) {
  SceneList& scenes = app.explorer.scenes;
  if (std::exchange(app.ui.scenes, false)) {
    scenes.read();
    of_ = {}, names_.clear();
    ImGui::OpenPopup("scenes");
  }
  if (!begin_floating(ui, "scenes", page_width * ui.theme.text_scale, 64)) return leave(scenes);
  follow(scenes);
  section(ui, said("SCENES"), said("states of this window, to be presented in this order"));
  which(ui, app);
  ImGui::Dummy({0, ui.px(4)});
  const std::size_t count = names_.size();
  if (count == 0) {
    if (scenes.known())
      note(
          ui,
          said("Nothing is on this list yet. Set the window up as you want to show it, and press F7; then go on to the "
               "next thing to show."));
  } else {
    const float rows = ui.px(scene_height) * static_cast<float>(count);
    ImGui::BeginChild("list", {0, std::min(rows, ImGui::GetIO().DisplaySize.y * 0.5f)}, ImGuiChildFlags_NavFlattened);
    for (std::size_t step = 0; step < count && step < names_.size(); ++step) row(ui, app, step);
    ImGui::EndChild();
    const UseFont font(ui, ui.small());
    paragraph(ui,
              say("A lesson’s file, {}: prose, notes and questions can be written into it.", scenes.file().string()),
              ui.theme.faint);
  }
  ImGui::Dummy({0, ui.px(4)});
  const Action& add = *find_action("scenes.add");
  ImGui::BeginDisabled(!add.is_enabled(app));
  if (button(ui, to_say("Add what is on the screen"))) add.run(app);
  ImGui::EndDisabled();
  ImGui::SameLine(0, ui.px(8));
  ImGui::BeginDisabled(count == 0);
  if (button(ui, to_say("Present"))) present(app, 0, true);
  ImGui::EndDisabled();
  ImGui::SameLine(0, ui.px(8));
  const std::string undoable = scenes.undoable();
  ImGui::BeginDisabled(undoable.empty());
  if (button(ui, to_say("Undo"))) scenes.undo();
  ImGui::EndDisabled();
  if (!undoable.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("Take back"), undoable});
  ImGui::SameLine(0, ui.px(8));
  if (button(ui, to_say("Close")) || (ImGui::IsKeyPressed(ImGuiKey_Escape) && !ImGui::IsAnyItemActive()))
    ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace headscope
