#include "app/window/presenter_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/lesson_panel.h"
#include "app/window/shortcuts.h"
#include "core/base/error.h"
#include "core/base/words.h"

namespace headscope {

namespace {
constexpr int usual_width = 960, usual_height = 640;
constexpr double notes_size = 18, clock_size = 40;
constexpr double right_column = 260;

Font large(const Ui& ui, double size, int weight = 400) {
  return {FontRole::ui, size * ui.theme.text_scale, weight};
}
}  // namespace

std::string clock_text(double seconds) {
  const auto all = static_cast<long long>(std::floor(std::max(seconds, 0.0)));
  const long long hours = all / 3600, minutes = all / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60)
                   : fmt::format("{}:{:02}", minutes, all % 60);
}

void PresenterView::frame(AppContext& app, Window& first, double now) {
  now_ = now;
  const auto lesson = app.slides() ? app.explorer.lessons.lesson() : nullptr;
  if (lesson != of_) of_ = lesson, begun_ = now;
  elapsed_ = of_ ? now - begun_ : 0;
  if (!of_ || (window_ && window_->closing())) app.ui.presenter = false;
  if (!app.ui.presenter) return window_.reset();
  if (!window_) open(app, first);
  if (!window_) return;
  if (const double zoom = app.settings.ui_scale; window_->zoom() != zoom) window_->set_zoom(zoom);
  window_->frame([&](Ui& ui) { draw(ui, app); });
}

void PresenterView::open(AppContext& app, Window& first) {
  WindowOptions options;
  options.title = said("Headscope: notes");
  options.width = usual_width, options.height = usual_height;
  options.offscreen = first.offscreen();
  options.theme = app.explorer.state().view.theme;
  options.name_items = first.names_items();
  try {
    window_ = std::make_unique<Window>(options, first);
  } catch (const Error& error) {
    app.ui.presenter = false;
    app.explorer.jobs.show({Message::Level::error, error.what(), ""});
  }
}

void PresenterView::keys(AppContext& app) const {
  const bool arrows_taken = app.ui.arrows_taken;  // in the first window, which looks at it in its next frame
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false))
    app.ui.presenting = false;
  else
    run_shortcuts(app);
  app.ui.arrows_taken = arrows_taken;
  slide_keys(app);
}

/// How long it has taken; of how long it should, where the lesson says that.
void PresenterView::clock(Ui& ui, const std::optional<int>& minutes) {
  const Color color = minutes && elapsed_ > 60.0 * *minutes ? legible(ui.theme, ui.theme.key) : ui.theme.text;
  {
    const UseFont font(ui, {FontRole::mono, clock_size * ui.theme.text_scale, 400});
    text_line(ui, clock_text(elapsed_), color);
    ui.name("elapsed " + clock_text(elapsed_), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  }
  if (minutes) share_of(ui, *minutes);
  ImGui::Dummy({0, ui.px(12)});
  if (button(ui, to_say("Set the clock to 0"))) begun_ = now_, elapsed_ = 0;
}

void PresenterView::share_of(Ui& ui, int minutes) const {
  const double share = elapsed_ / (60.0 * minutes);
  note(ui,
       share > 1 ? say("{} over {} min", clock_text(elapsed_ - 60.0 * minutes), minutes) : say("of {} min", minutes));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = ui.px(4);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, {at.x + width, at.y + height}, col(ui.chrome.raised), ui.px(2));
  draw->AddRectFilled(at, {at.x + width * static_cast<float>(std::clamp(share, 0.0, 1.0)), at.y + height},
                      col(share > 1 ? ui.theme.key : ui.theme.accent), ui.px(2));
  ui.name(fmt::format("of {} min", minutes), at, {at.x + width, at.y + height});
}

void PresenterView::draw(Ui& ui, AppContext& app) {
  keys(app);
  LessonController& lessons = app.explorer.lessons;
  if (lessons.lesson() != of_) return;  // a key has ended it
  const Lesson& lesson = *of_;
  const int at = lessons.at();
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(24), ui.px(20)});
  ImGui::Begin("presenter", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBringToFrontOnFocus);
  ImGui::PopStyleVar(2);
  const float side = ui.px(right_column * ui.theme.text_scale), gap = ui.px(24);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  ImGui::BeginChild("notes", {room.x - side - gap, room.y}, ImGuiChildFlags_NavFlattened);
  section(ui, said("NOTES"), say("{} · step {} of {}", lesson.title, at + 1, lesson.steps.size()));
  ImGui::Dummy({0, ui.px(6)});
  {
    const UseFont font(ui, large(ui, 22, 600));
    paragraph(ui, lessons.step().title, ui.theme.text);
  }
  ImGui::Dummy({0, ui.px(10)});
  if (lessons.step().notes.empty()) {
    note(ui, said("This step has no notes. In a lesson’s file, lines that begin with “> ” are notes for whoever "
                  "presents it."));
  } else if (const auto told = lessons.told()) {
    for (const std::string& each : told->notes) {
      emphasised(ui, each, ui.theme.text, large(ui, notes_size));
      ImGui::Dummy({0, ui.px(10)});
    }
  }
  if (const std::string error = lessons.error(); !error.empty()) error_text(ui, error);
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  ImGui::BeginChild("side", {side, room.y}, ImGuiChildFlags_NavFlattened);
  section(ui, said("TIME"));
  clock(ui, lesson.minutes);
  ImGui::Dummy({0, ui.px(24)});
  section(ui, said("NEXT"));
  const LessonStep* next = lesson.after(at);
  {
    const UseFont font(ui, ui.heading());
    paragraph(ui, next ? next->title : said("This is the last step."), next ? ui.theme.text : ui.theme.muted);
  }
  ImGui::Dummy({0, ui.px(12)});
  ImGui::BeginDisabled(at == 0);
  if (button(ui, to_say("Back"))) lessons.go(at - 1);
  ImGui::EndDisabled();
  ImGui::SameLine(0, ui.px(8));
  ImGui::BeginDisabled(!next);
  if (button(ui, to_say("Next"))) lessons.go(at + 1);
  ImGui::EndDisabled();
  ImGui::Dummy({0, ui.px(24)});
  section(ui, said("ON THE SCREEN"));
  if (button(ui, app.ui.spotlight ? to_say("Spotlight off (L)") : to_say("Spotlight (L)")))
    app.ui.spotlight = !app.ui.spotlight;
  if (button(ui, to_say("Show the step again (F6)"))) lessons.show_again();
  if (button(ui, to_say("End (Escape)"))) app.ui.presenting = false;
  ImGui::EndChild();
  ImGui::End();
}

}  // namespace headscope
