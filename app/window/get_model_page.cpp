#include "app/window/get_model_page.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/file_dialog.h"
#include "app/window/floating.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/user_folders.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

using PullState = PullController::State;
constexpr double row_height = 42;
}  // namespace

void GetModelPage::open(AppContext& app) {
  models_.look(app.explorer.jobs, app.settings.model_folders);
  if (!under_way()) pull_.clear();
  problem_.clear();
  hub_.reset();
  try {
    hub_ = HubSettings::from_environment();
  } catch (const std::exception& wrong) {
    problem_ = wrong.what();
  }
  ImGui::OpenPopup("get a model");
}

std::string GetModelPage::status() const {
  if (!under_way()) return "";
  const PullProgress at = pull_.progress();
  const std::string name = say("getting {}", pull_.request().model);
  return at.total == 0
             ? name
             : fmt::format("{} · {:.0f} %", name, 100 * static_cast<double>(at.done) / static_cast<double>(at.total));
}

std::optional<PullRequest> GetModelPage::request() {
  try {
    std::string text = name_;
    while (!text.empty() && text.back() == ' ') text.pop_back();
    PullRequest request = PullRequest::parse(text);
    if (!revision_.empty()) {
      check_revision(revision_);
      request.revision = revision_;
    }
    return request;
  } catch (const std::exception& wrong) {
    problem_ = wrong.what();
    return std::nullopt;
  }
}

void GetModelPage::get(AppContext& app) {
  problem_.clear();
  if (!hub_) return;
  if (const auto wanted = request()) pull_.start(app.explorer.jobs, *hub_, *wanted);
}

/// Once it has come: opened where the page is still looked at, told of otherwise.
void GetModelPage::finish(AppContext& app, bool shown) {
  const auto pulled = pull_.take_done();
  if (!pulled) return;
  pull_.clear();
  models_.look(app.explorer.jobs, app.settings.model_folders);
  if (shown) {
    open_path(pulled->folder, app);
    ImGui::CloseCurrentPopup();
  } else {
    app.explorer.jobs.tell(say_later("{} is here; the menu of models opens it.", pulled->model));
  }
  for (const std::string& remark : pulled->remarks) app.explorer.jobs.show({Message::Level::info, remark, ""});
}

void GetModelPage::offered(Ui& ui) {
  const float row = ui.px(row_height * ui.theme.text_scale);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {ImGui::GetStyle().ItemSpacing.x, ui.px(4)});
  ImGui::BeginChild("offered", {0, std::min(ui.px(380), ImGui::GetIO().DisplaySize.y * 0.38f)},
                    ImGuiChildFlags_Borders | ImGuiChildFlags_NavFlattened);
  if (!models_.last()) note(ui, said("Looking…"));
  if (models_.last())
    for (const auto& [entry, here] : models_.last()->offered) {
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float room = ImGui::GetContentRegionAvail().x;
      const ImVec2 end{at.x + room, at.y + row - ui.px(4)};
      if (ImGui::Selectable(("##" + entry.name).c_str(), entry.name == name_, ImGuiSelectableFlags_NoAutoClosePopups,
                            {room, row - ui.px(4)})) {
        name_ = entry.name;
        revision_.clear();
        problem_.clear();
        if (!under_way()) pull_.clear();
      }
      ui.name(entry.name, at, end);
      if (!ImGui::IsItemVisible()) continue;
      ImDrawList& draw = *ImGui::GetWindowDrawList();
      const double logical = static_cast<double>(room / ui.scale) - 16;
      const std::string size = memory_text(static_cast<double>(entry.bytes));
      const std::string detail = fmt::format("{} · {} · {}", entry.family,
                                             here == InCache::model ? size : say("about {}", size), entry.licence);
      const char* const state = here == InCache::model  ? said("on this machine")
                                : here == InCache::part ? said("here in part")
                                : entry.gated           ? said("gated: accept its terms first")
                                                        : "";
      const float first = at.y + ui.px(15 * ui.theme.text_scale), second = at.y + ui.px(31 * ui.theme.text_scale);
      const double right = ui.fonts.width(detail, ui.small()), below = ui.fonts.width(state, ui.small());
      const auto text = [&](const std::string& words, const Font& font, Color color, Anchor anchor, float y) {
        const float x = anchor == Anchor::start ? at.x + ui.px(8) : end.x - ui.px(8);
        draw_text(ui, draw, {{0, 0}, words, font, color, anchor, 0}, {x, y});
      };
      text(elided(entry.name, ui.body(), logical - right - 12, ui.fonts), ui.body(), ui.theme.text, Anchor::start,
           first);
      text(detail, ui.small(), ui.theme.muted, Anchor::end, first);
      text(elided(said(entry.why), ui.small(), logical - below - 12, ui.fonts), ui.small(), ui.theme.faint,
           Anchor::start, second);
      text(state, ui.small(), here == InCache::model ? legible(ui.theme, ui.theme.accent) : ui.theme.faint, Anchor::end,
           second);
    }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

void GetModelPage::request_line(Ui& ui, AppContext& app) {
  const float gap = ui.px(8), revision = ui.px(150 * ui.theme.text_scale);
  const bool here = models_.last() && revision_.empty() &&
                    std::ranges::any_of(models_.last()->offered, [&](const OfferedModel& each) {
                      return each.entry.name == name_ && each.here == InCache::model;
                    });
  const char* const verb = under_way() ? to_say("Stop") : here ? to_say("Open") : to_say("Get");
  ImGui::BeginDisabled(under_way());
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - revision - button_width(ui, verb) - 2 * gap);
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  const auto entered = [] {
    return ImGui::IsItemDeactivated() &&
           (ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter));
  };
  bool go = false;
  if (input_line(ui, "##model to get", said("org/name, as on its page"), name_)) problem_.clear();
  go = go || entered();
  ImGui::SameLine(0, gap);
  ImGui::SetNextItemWidth(revision);
  if (input_line(ui, "##revision to get", said("revision: main"), revision_)) problem_.clear();
  go = go || entered();
  ImGui::EndDisabled();
  ImGui::SameLine(0, gap);
  ImGui::BeginDisabled(!under_way() && !here && (name_.empty() || !hub_ || hub_->offline));
  const bool pressed = button(ui, verb, ImGui::GetFrameHeight());
  ImGui::EndDisabled();
  if (under_way()) {
    if (pressed) pull_.stop(app.explorer.jobs);
  } else if (here && (pressed || go)) {
    open_path(name_, app);
    ImGui::CloseCurrentPopup();
  } else if (pressed || (go && !name_.empty() && hub_ && !hub_->offline)) {
    get(app);
  }
}

/// How far it is, or what became of it.
void GetModelPage::answer(Ui& ui) {
  if (under_way()) {
    const PullProgress at = pull_.progress();
    const float share =
        at.total == 0 ? 0.f : static_cast<float>(static_cast<double>(at.done) / static_cast<double>(at.total));
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const float room = ImGui::GetContentRegionAvail().x, height = ui.px(4);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(from, {from.x + room, from.y + height}, col(ui.chrome.raised), height / 2);
    draw.AddRectFilled(from, {from.x + room * std::min(share, 1.f), from.y + height}, col(ui.theme.accent), height / 2);
    ImGui::Dummy({room, height});
    ui.name("progress", from, {from.x + room, from.y + height});
    const UseFont font(ui, ui.number());
    text_line(ui, pull_.progress_text(), ui.theme.text);
    if (!at.file.empty()) {
      const UseFont small(ui, ui.small());
      text_line(ui, elided(at.file, ui.small(), static_cast<double>(room / ui.scale), ui.fonts), ui.theme.muted);
    }
    return;
  }
  if (!problem_.empty()) return error_text(ui, problem_);
  if (pull_.state() == PullState::failed) return error_text(ui, pull_.error());
  if (pull_.state() == PullState::stopped)
    return note(ui, said("Stopped. What has come stays, and “Get” goes on from there."));
  if (hub_ && hub_->offline)
    return error_text(
        ui, said("HF_HUB_OFFLINE is set: Headscope stays off the network. Start it without that to get models."));
  note(ui, said("A revision is a branch, a tag or a commit, such as step1000 of a Pythia model."));
}

void GetModelPage::draw(Ui& ui, AppContext& app) {
  if (std::exchange(app.ui.get_model, false)) open(app);
  if (!begin_floating(ui, "get a model", 760 * ui.theme.text_scale, 60)) return finish(app, false);
  {
    const UseFont use(ui, ui.heading());
    text_line(ui, said("Get a model"));
  }
  if (hub_)
    paragraph(ui,
              hub_->token.empty()
                  ? say("“Get” goes online, to {}, and puts the model into {}. Nothing is sent but its name. "
                        "Headscope uses the network for nothing else.",
                        hub_->host(), with_tilde(hub_->cache))
                  : say("“Get” goes online, to {}, and puts the model into {}. Nothing is sent but its name and your "
                        "token. Headscope uses the network for nothing else.",
                        hub_->host(), with_tilde(hub_->cache)),
              ui.theme.muted);
  offered(ui);
  request_line(ui, app);
  answer(ui);
  finish(app, true);
  if (button(ui, to_say("Close")) || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  if (under_way()) {
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    text_line(ui, said("it goes on when this is closed"), ui.theme.faint);
  }
  ImGui::EndPopup();
}

}  // namespace headscope
