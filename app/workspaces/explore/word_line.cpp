#include "app/workspaces/explore/word_line.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/choices.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
constexpr double patience = 2;  // seconds that the heads that are taken out may take together
}

bool WordLine::wanted(const PageContext& c) {
  const Document& document = c.state().document;
  return c.app.settings.word_answers && c.trace() && !c.captured() && !c.trace()->picture && document.query &&
         document.stack != Stack::encoder && document.stack != Stack::cross && c.results().model.model &&
         !c.app.explorer.lessons.lesson() && !c.app.ui.presenting;
}

void WordLine::keep_up(const PageContext& c) {
  if (!controller_) controller_.emplace(c.jobs, "word", "asking what the word looks at");
  controller_->frame();
  const double pass = c.trace()->milliseconds / 1000;
  const int most = WordRequest{}.most_heads;
  WordRequest now{
      .run = c.results().run->request,
      .row = std::min<Index>(*c.state().document.query, static_cast<Index>(c.trace()->queries().size()) - 1)};
  // What "Take it out" does is to be compared with the sentence, not to change it.
  std::erase_if(now.run.edits, [&](const Intervention& edit) {
    const auto& [layer, head, positions, stack] = edit.target;
    return layer && head && edit == without_look(now, {*layer, *head});
  });
  now.most_heads = pass > 0 ? static_cast<int>(std::clamp(patience / pass, 1.0, static_cast<double>(most))) : most;
  // How long the last pass took says nothing about the question.
  if (asked_ && model_ == c.results().model_reading) {
    WordRequest same = now;
    same.most_heads = asked_->most_heads;
    if (*asked_ == same) return;
  }
  if (!asked_ || asked_->row != now.row || !(asked_->run == now.run)) found_.reset();
  asked_ = now, model_ = c.results().model_reading;
  controller_->start(std::make_shared<WordSweep>(c.results().model, now),
                     [this](std::shared_ptr<const WordAnswer> known) { found_ = std::move(known); });
}

void WordLine::draw(const PageContext& c) {
  if (!wanted(c)) return;
  keep_up(c);
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  const float cross = button_width(c.ui, "×");
  section(c.ui, "THIS WORD", "what heads do from here", cross + c.ui.px(8));
  ImGui::SameLine();
  ImGui::SetCursorPosX(right - cross);
  if (button(c.ui, "×", c.ui.px(22))) c.app.settings.word_answers = false;
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(c.ui, {"Put this away. Answers about a word, in the palette, brings it back"});
  // Half-way the head that the answer needs most might be another.
  const bool done = controller_->phase() == SweepController::Phase::finished && found_;
  if (done) {
    paragraph(c.ui, printable(found_->sentence, 4000), c.ui.theme.text);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(c.ui, {found_->provenance});
  } else {
    note(c.ui, controller_->phase() == SweepController::Phase::failed ? controller_->error().c_str()
                                                                      : "Heads are asked what they do from here …");
  }
  ImGui::Dummy({0, c.ui.px(2)});
  things_to_look_at(c);
  ImGui::Dummy({0, c.ui.px(6)});
}

void WordLine::things_to_look_at(const PageContext& c) {
  Choices choice(c);
  if (found_ && !found_->looks.empty() && controller_->phase() == SweepController::Phase::finished) {
    const WordLook& look = found_->looks.front();
    if (choice("Look at head " + to_string(look.head))) {
      c.editor.select(look.head);
      c.editor.pin(found_->request.row, look.key);
    }
    choice.take_out(without_look(found_->request, look.head));
  }
  View& view = c.editor.view();
  if (view.head_view != HeadView::heads && choice("This word in all heads")) view.head_view = HeadView::heads;
  if (view.head_view == HeadView::heads && choice("Back to one head")) view.head_view = HeadView::map;
  if (choice("Another word")) c.editor.pin(std::nullopt);
}

}  // namespace headscope
