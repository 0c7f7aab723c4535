#include "app/window/lesson_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "app/actions/shortcut_words.h"
#include "app/state/model_list.h"
#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/line_breaks.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/export/glyphs.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

using Kind = LessonQuestion::Kind;

std::string without_marks(std::string text) {
  std::erase(text, '*');
  return text;
}

/// A choice as wide as the column, its words broken into lines; true when clicked.
bool wide_choice(const Ui& ui, const std::string& words, const char* id, bool chosen) {
  const float room = ImGui::GetContentRegionAvail().x, pad = ui.px(10);
  const std::string shown = broken_at_spaces(words, static_cast<double>((room - 2 * pad) / ui.scale),
                                             [&](std::string_view part) { return ui.fonts.width(part, ui.body()); });
  const auto lines = static_cast<float>(1 + std::ranges::count(shown, '\n'));
  const UseFont use(ui, ui.body());
  const float line = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos(), size{room, lines * line + ui.px(12)};
  const bool clicked = ImGui::InvisibleButton(id, size);
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 corner{at.x + size.x, at.y + size.y};
  draw->AddRectFilled(at, corner,
                      col(hovered  ? ui.chrome.hovered
                          : chosen ? ui.chrome.selected
                                   : ui.chrome.raised),
                      ui.px(4));
  draw->AddRect(at, corner, col(chosen ? ui.theme.accent : ui.chrome.border), ui.px(4));
  float y = at.y + ui.px(6);
  for (std::size_t from = 0; from <= shown.size();) {
    const std::size_t end = std::min(shown.find('\n', from), shown.size());
    draw_text(ui, *draw, {{0, 0}, shown.substr(from, end - from), ui.body(), ui.theme.text, Anchor::start, 0},
              {at.x + pad, y + line * 0.78f});
    y += line;
    from = end + 1;
  }
  ui.name(id, at, corner);
  return clicked;
}

}  // namespace

/// A paragraph. Lines end at spaces, and beside characters of scripts without spaces; words that no line has room for
/// are broken between characters. What stands on a line in one colour is drawn as one, and measured as it is drawn.
void emphasised(const Ui& ui, std::string_view text, Color color, const Font& font) {
  const std::string plain = without_marks(std::string(text));
  const UseFont use(ui, font);
  if (runs_right_to_left(plain)) return paragraph(ui, plain, color);  // laid out as a whole
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, ui.px(3)});
  const float left = ImGui::GetCursorPosX(), room = ImGui::GetContentRegionAvail().x;
  const Color accent = legible(ui.theme, ui.theme.accent);
  const auto width_of = [&](std::string_view part) {
    const std::string_view shown = ui.fonts.laid_out(part);
    return ImGui::CalcTextSize(shown.data(), shown.data() + shown.size()).x;
  };
  using Run = std::pair<std::string, bool>;  // accented
  std::vector<Run> runs;                     // of the line
  std::string line;
  const auto end_line = [&] {
    std::size_t drawn = 0;
    for (const auto& [words, accented] : runs) {
      if (drawn > 0) ImGui::SameLine(left + width_of(std::string_view(line).substr(0, drawn)));
      text_line(ui, words, accented ? accent : color);
      drawn += words.size();
    }
    runs.clear(), line.clear();
  };
  const auto put = [&](std::string_view words, bool accented) {
    if (runs.empty() || runs.back().second != accented) runs.emplace_back("", accented);
    runs.back().first += words, line += words;
  };
  bool strong = false;
  const auto unit = [&](std::string_view part, bool behind_space) {
    const std::string words = without_marks(std::string(part)), space = behind_space ? " " : "";
    if (!line.empty() && width_of(line + space + words) > room)
      end_line();
    else if (!line.empty())
      put(space, runs.back().second);
    const bool whole = width_of(words) <= room;
    for (std::size_t from = 0; from < part.size();) {
      if (part[from] == '*') {
        strong = !strong, ++from;
        continue;
      }
      const std::size_t to = whole ? std::min(part.find('*', from), part.size()) : character_end(part, from);
      const std::string_view piece = part.substr(from, to - from);
      if (!whole && !line.empty() && width_of(line + std::string(piece)) > room) end_line();
      put(piece, strong);
      from = to;
    }
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    bool behind_space = true;
    for (const std::string_view part : breakable_parts(text.substr(at, end - at)))
      unit(part, std::exchange(behind_space, false));
    at = end + 1;
  }
  end_line();
  ImGui::PopStyleVar();
}

void LessonPanel::draw(Ui& ui, AppContext& app) {
  LessonController& lessons = app.explorer.lessons;
  const auto lesson = lessons.lesson();
  if (!lesson) return;
  if (of_ != std::pair{lesson, lessons.at()}) typed_.clear();
  of_ = {lesson, lessons.at()};
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, cross = button_width(ui, "×");
  section(ui, said("LESSON"), say("step {} of {}", lessons.at() + 1, lesson->steps.size()), cross + ui.px(8));
  ImGui::SameLine();
  ImGui::SetCursorPosX(right - cross);
  const bool leave = button(ui, "×", ui.px(22));
  ui.name("leave the lesson", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("Leave the lesson: your own text comes back")});
  note(ui, lesson->title);
  ImGui::Dummy({0, ui.px(4)});
  {
    const UseFont font(ui, ui.heading());
    paragraph(ui, lessons.step().title, ui.theme.text);
  }
  ImGui::Dummy({0, ui.px(4)});
  const auto told = lessons.told();
  if (const std::string error = lessons.error(); !error.empty()) {
    error_text(ui, error);
  } else if (!told) {
    if (app.explorer.jobs.busy())
      note(ui, said("The model is read …"));
    else
      error_text(ui, say("The model of this step, {}, is not open.", lessons.step().scene.model));
  }
  if (told) {
    prose(ui, *told);
    if (told->prose.empty()) shown_edits(ui, app);
    if (lessons.step().question) question(ui, lessons, *told);
  }
  way_on(ui, app);
  if (app.slides()) slide_keys(app);
  if (leave) lessons.close();
}

void slide_keys(AppContext& app) {
  app.ui.sideways_taken = true;
  const ImGuiIO& io = ImGui::GetIO();
  if (io.WantTextInput || io.KeyCtrl || io.KeyAlt || io.KeyShift || walking_controls() ||
      ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel))
    return;
  LessonController& lessons = app.explorer.lessons;
  const auto pressed = [](std::initializer_list<ImGuiKey> keys) {
    return std::ranges::any_of(keys, [](ImGuiKey key) { return ImGui::IsKeyPressed(key, false); });
  };
  if (pressed({ImGuiKey_Space, ImGuiKey_RightArrow, ImGuiKey_PageDown})) lessons.go(lessons.at() + 1);
  if (pressed({ImGuiKey_LeftArrow, ImGuiKey_PageUp})) lessons.go(lessons.at() - 1);
}

void LessonPanel::prose(const Ui& ui, const LessonTold& told) const {
  for (const std::string& each : told.prose) {
    emphasised(ui, each, ui.theme.text, ui.body());
    ImGui::Dummy({0, ui.px(6)});
  }
}

/// Of a scene without words: what a class has to know that the picture does not say.
void LessonPanel::shown_edits(const Ui& ui, const AppContext& app) const {
  const Document& document = app.explorer.state().document;
  const std::string& title = app.explorer.lessons.step().title;
  note(ui, model_label(document.model));
  for (const Intervention& edit : document.edits)
    if (const std::string words = describe(edit); edit.enabled && title.find(words) == std::string::npos)
      paragraph(ui, words, ui.theme.text);
}

void LessonPanel::question(Ui& ui, LessonController& lessons, const LessonTold& told) {
  const LessonQuestion& q = lessons.step().question.value();
  ImGui::Dummy({0, ui.px(2)});
  section(ui, said("QUESTION"));
  emphasised(ui, told.ask, ui.theme.text, ui.body());
  ImGui::Dummy({0, ui.px(4)});
  switch (q.kind) {
    case Kind::token:
      tokens(ui, lessons, told);
      break;
    case Kind::head:
      heads(ui, lessons, told);
      break;
    case Kind::number:
      number(ui, lessons);
      break;
    case Kind::choice:
      for (std::size_t i = 0; i < told.choices.size(); ++i) {
        const auto at = static_cast<Index>(i);
        const bool chosen = lessons.guess() && *lessons.guess() == LessonGuess(at);
        if (wide_choice(ui, without_marks(told.choices[i]), fmt::format("choice {}", i + 1).c_str(), chosen))
          lessons.answer(at);
      }
      break;
    case Kind::until:
      if (!lessons.answer()) note(ui, said("Change it on the screen; what you reach is told here."));
      break;
  }
  reply(ui, lessons);
}

void LessonPanel::tokens(Ui& ui, LessonController& lessons, const LessonTold& told) const {
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale), gap = 4;
  double used = 0;
  for (std::size_t i = 0; i < told.tokens.size(); ++i) {
    const std::string label = printable(told.tokens[i], 40);
    const double width = token_chip_width(ui, label);
    if (i > 0 && used + gap + width <= room) {
      ImGui::SameLine(0, ui.px(gap));
      used += gap + width;
    } else {
      used = width;
    }
    const auto at = static_cast<Index>(i);
    const ChipOptions options{.selected = lessons.guess() && *lessons.guess() == LessonGuess(at)};
    if (token_chip(ui, label, fmt::format("guess token {}", i), options).clicked) lessons.answer(at);
  }
}

void LessonPanel::heads(Ui& ui, LessonController& lessons, const LessonTold& told) const {
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale), gap = 4;
  for (int layer = 0; layer < told.layers; ++layer) {
    double used = 0;
    for (int head = 0; head < nth(told.heads_of, layer); ++head) {
      const HeadId id{layer, head};
      const std::string label = to_string(id);
      const double width = token_chip_width(ui, label);
      if (head > 0 && used + gap + width <= room) {
        ImGui::SameLine(0, ui.px(gap));
        used += gap + width;
      } else {
        used = width;
      }
      const ChipOptions options{.selected = lessons.guess() && *lessons.guess() == LessonGuess(id)};
      if (token_chip(ui, label, "guess head " + label, options).clicked) lessons.answer(id);
    }
  }
}

void LessonPanel::number(Ui& ui, LessonController& lessons) {
  const float check = button_width(ui, to_say("Check")), height = ImGui::GetFrameHeight();
  ImGui::SetNextItemWidth(std::min(ui.px(160), ImGui::GetContentRegionAvail().x - check - ui.px(8)));
  input_line(ui, "##lesson number", said("a number"), typed_);
  const bool entered =
      ImGui::IsItemFocused() && (ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter));
  ImGui::SameLine(0, ui.px(8));
  const std::optional<double> value = number_typed(typed_);
  ImGui::BeginDisabled(!value);
  if ((button(ui, to_say("Check"), height) || entered) && value) lessons.answer(*value);
  ImGui::EndDisabled();
}

void LessonPanel::reply(Ui& ui, LessonController& lessons) const {
  const auto answer = lessons.answer();
  if (lessons.asking() && !answer) return note(ui, said("The model is asked …"));
  if (!answer) return;
  const bool until = lessons.step().question->kind == Kind::until;
  if (until && !answer->right) return note(ui, said("Not yet: it is not so on the screen."));
  ImGui::Dummy({0, ui.px(4)});
  {
    const UseFont font(ui, ui.strong());
    paragraph(ui,
              !answer->right ? say("The model says {}.", answer->truth)
              : until        ? said("Done.")
                             : say("Right: {}.", answer->truth),
              answer->right ? legible(ui.theme, ui.theme.accent) : ui.theme.text);
  }
  if (!until) {
    std::string beside = answer->right ? "" : say("You said {}.", answer->guess) + " ";
    if (std::isfinite(answer->chance) && answer->chance > 0)
      beside += say("Guessing finds it one time in {:.0f}.", 1 / answer->chance);
    if (!beside.empty()) note(ui, beside);
  }
  ImGui::Dummy({0, ui.px(2)});
  emphasised(ui, answer->because, ui.theme.text, ui.body());
}

void LessonPanel::way_on(Ui& ui, AppContext& app) const {
  LessonController& lessons = app.explorer.lessons;
  ImGui::Dummy({0, ui.px(10)});
  const auto offer = [&](const char* id) {
    const Action& action = *find_action(id);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(ui, {action.shown() + " (" + shown_shortcut(action.shortcut) + ")"});
  };
  // In a slim column they stand in several lines.
  const float right_end = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const auto beside = [&](const char* label) {
    if (ImGui::GetItemRectMax().x + ui.px(8) + button_width(ui, label) <= right_end) ImGui::SameLine(0, ui.px(8));
    return button(ui, label, ui.px(28));
  };
  ImGui::BeginDisabled(lessons.at() == 0);
  if (button(ui, to_say("Back"), ui.px(28))) lessons.go(lessons.at() - 1);
  ImGui::EndDisabled();
  offer("lesson.back");
  if (!lessons.last()) {
    if (beside(to_say("Next"))) lessons.go(lessons.at() + 1);
    offer("lesson.next");
  } else if (beside(to_say("All lessons"))) {
    app.ui.lessons = true;
  }
  if (app.ui.presenting && beside(to_say("Leave full screen"))) app.ui.presenting = false;
  if (lessons.wandered()) {
    if (beside(to_say("Show again"))) lessons.show_again();
    offer("lesson.show");
  }
  if (const auto [right, answered] = lessons.score(); lessons.last() && answered > 0) {
    ImGui::Dummy({0, ui.px(6)});
    note(ui, say("{} of {} questions answered right at first.", right, answered));
  }
}

void LessonsPage::draw(Ui& ui, AppContext& app) {
  LessonController& lessons = app.explorer.lessons;
  if (std::exchange(app.ui.lessons, false)) {
    lessons.read_again();
    ImGui::OpenPopup("lessons");
  }
  if (!begin_floating(ui, "lessons", 640 * ui.theme.text_scale, 64)) return;
  const auto& all = lessons.list();
  section(ui, said("LESSONS"), said("predict, look, change: each beside the model it is about"));
  const float row = ui.px(30);
  ImGui::BeginChild("list", {0, std::min(row * static_cast<float>(std::max<std::size_t>(all.size(), 1)) + ui.px(8),
                                         ImGui::GetIO().DisplaySize.y * 0.7f)});
  if (all.empty()) note(ui, said("No lessons were found."));
  for (const auto& each : all) {
    ImGui::PushID(each->id.c_str());  // one's own may be called as others
    std::string about = each->minutes ? say("{} min", *each->minutes) + " · " : "";
    about += say("level {}", each->level);
    if (!each->scene.model.empty()) about += " · " + each->scene.model;
    if (result_row(ui, each->title, about, lessons.lesson() && each->id == lessons.lesson()->id)) {
      lessons.open(each);
      ImGui::CloseCurrentPopup();
    }
    ImGui::PopID();
  }
  ImGui::EndChild();
  if (button(ui, to_say("Close")) || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace headscope
