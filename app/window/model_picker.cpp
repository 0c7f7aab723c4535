#include "app/window/model_picker.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <utility>

#include "app/actions/fuzzy.h"
#include "app/actions/shortcut_words.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/file_dialog.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double menu_width = 560, model_row_height = 42;
constexpr std::size_t most_recent = 4;

/// One line of why; the whole of it is the tooltip.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

void ModelPicker::make_rows(const AppContext& app) {
  rows_.clear();
  std::vector<std::filesystem::path> listed;
  // Letters anywhere in a name; a place only by a part of it as it is, since any few letters are in a long path.
  const auto fits = [&](const std::string& name, const std::string& place) {
    return filter_.empty() || fuzzy_match(filter_, name).has_value() || place.find(filter_) != std::string::npos;
  };
  auto heading = [&, last = static_cast<const char*>(nullptr)](Row row, const char* of) mutable {
    if (std::exchange(last, of) != of) row.heading = of;
    rows_.push_back(std::move(row));
  };
  if (const AdaptedPath open = adapted_path(app.explorer.results().model_folder); !open.adapter.empty())
    heading({said("Without the adapter"), "", open.model.string(), open.adapter.string(), open.model, true, nullptr},
            to_say("OPEN"));
  for (const std::filesystem::path& recent : app.settings.recent_models) {
    if (listed.size() == most_recent) break;
    const std::string name = model_label(recent);
    if (!fits(name, recent.string())) continue;
    listed.push_back(recent);
    heading({name, "", recent.string(), recent.string(), recent, true, nullptr}, to_say("RECENT"));
  }
  if (!models_.last()) return;
  for (const auto& [model, place] : models_.last()->models) {
    const std::string shape = shape_text(model);
    const std::string detail = model.family.empty() ? shape : model.family + (shape.empty() ? "" : " · " + shape);
    if (!fits(model.name + " " + model.family, place)) continue;
    const bool opens = model.refusal.empty();
    heading({model.name, detail, opens ? place : say("does not open: {}", first_line(model.refusal)),
             opens ? model.path.string() : model.refusal, model.path, opens, nullptr},
            to_say("ON THIS MACHINE"));
  }
}

const ModelPicker::Row* ModelPicker::list(Ui& ui) {
  const int count = static_cast<int>(rows_.size());
  const bool down = ImGui::IsKeyPressed(ImGuiKey_DownArrow), up = ImGui::IsKeyPressed(ImGuiKey_UpArrow);
  for (const ImGuiKey key : {ImGuiKey_DownArrow, ImGuiKey_UpArrow}) ImGui::SetItemKeyOwner(key);
  // Past what does not open: the keyboard has nothing to do there.
  for (int step = down ? 1 : up ? -1 : 0, at = chosen_ + step; step != 0 && at >= 0 && at < count; at += step)
    if (nth(rows_, at).opens) {
      chosen_ = at;
      break;
    }
  chosen_ = std::min(chosen_, count - 1);
  const Row* picked = nullptr;
  if (chosen_ >= 0 && (ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter)))
    picked = &nth(rows_, chosen_);

  const float row = ui.px(model_row_height * ui.theme.text_scale);
  const auto headings = std::ranges::count_if(rows_, [](const Row& each) { return each.heading != nullptr; });
  const float wanted = row * static_cast<float>(std::max(count, 1)) + ui.px(28) * static_cast<float>(headings);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {ImGui::GetStyle().ItemSpacing.x, ui.px(4)});
  ImGui::BeginChild("models", {0, std::min(wanted + ui.px(6), ImGui::GetIO().DisplaySize.y * 0.44f)});
  if (count == 0)
    note(ui, models_.under_way() ? said("Looking…")
             : filter_.empty()   ? said("No models here.")
                                 : said("Nothing is called that."));
  for (int i = 0; i < count; ++i) {
    const Row& each = nth(rows_, i);
    if (each.heading) section(ui, said(each.heading));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float room = ImGui::GetContentRegionAvail().x;
    const ImVec2 end{at.x + room, at.y + row - ui.px(4)};
    ImGui::PushID(i);
    if (ImGui::Selectable("##model", i == chosen_, ImGuiSelectableFlags_NoAutoClosePopups, {room, row - ui.px(4)}) &&
        each.opens)
      picked = &each;
    ImGui::PopID();
    const bool visible = ImGui::IsItemVisible();
    ui.name(each.name, at, end);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(ui, {each.name, each.tooltip});
    if (i == chosen_ && (down || up)) ImGui::SetScrollHereY();
    if (!visible) continue;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const double logical = static_cast<double>(room / ui.scale) - 16;
    const std::string detail = elided(each.detail, ui.small(), logical * 0.6, ui.fonts);
    const double left = logical - ui.fonts.width(detail, ui.small()) - 12;
    const Color name = each.opens ? ui.theme.text : ui.theme.faint,
                quiet = each.opens ? ui.theme.muted : ui.theme.faint;
    const float first = at.y + ui.px(15 * ui.theme.text_scale), second = at.y + ui.px(31 * ui.theme.text_scale);
    draw_text(ui, draw, {{0, 0}, elided(each.name, ui.body(), left, ui.fonts), ui.body(), name, Anchor::start, 0},
              {at.x + ui.px(8), first});
    draw_text(ui, draw, {{0, 0}, detail, ui.small(), quiet, Anchor::end, 0}, {end.x - ui.px(8), first});
    draw_text(
        ui, draw,
        {{0, 0}, elided(each.second, ui.small(), logical, ui.fonts), ui.small(), ui.theme.faint, Anchor::start, 0},
        {at.x + ui.px(8), second});
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
  return picked;
}

void ModelPicker::draw(Ui& ui, AppContext& app) {
  if (ImGui::IsWindowAppearing()) {
    models_.look(app.explorer.jobs, app.settings.model_folders);
    filter_.clear();
    chosen_ = -1;
    shown_.reset();
    rows_.clear();
    ImGui::SetKeyboardFocusHere();
  }
  const float width = std::min(ui.px(menu_width * ui.theme.text_scale), ImGui::GetIO().DisplaySize.x - ui.px(120));
  ImGui::SetNextItemWidth(width);
  const bool typed = input_line(ui, "##filter models", said("Find a model on this machine"), filter_);
  if (typed || shown_ != models_.last() || shown_recent_ != app.settings.recent_models || made_for_ != filter_ ||
      made_in_ != words_generation() || rows_.empty()) {
    shown_ = models_.last();
    shown_recent_ = app.settings.recent_models;
    made_for_ = filter_;
    made_in_ = words_generation();
    make_rows(app);
    // What is typed means its first answer, so that Enter opens it.
    const auto first = std::ranges::find(rows_, true, &Row::opens);
    if (typed) chosen_ = filter_.empty() || first == rows_.end() ? -1 : static_cast<int>(first - rows_.begin());
  }
  if (const Row* row = list(ui)) {
    open_path(std::filesystem::path(row->path), app);  // a copy: opening changes the list
    ImGui::CloseCurrentPopup();
  }
  if (models_.last())
    for (const std::string& remark : models_.last()->remarks) note(ui, remark);
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::Separator();
  // Films are made in the menu of exports: all else has just the height of a small window.
  for (const Action& action : actions())
    if (action.group == "File" && !action.id.starts_with("file.open.") && action.id != "file.models" &&
        action.id != "file.film" &&
        menu_item(ui, action.title.c_str(), shown_shortcut(action.shortcut).c_str(), false, action.is_enabled(app)))
      action.run(app);
}

}  // namespace headscope
