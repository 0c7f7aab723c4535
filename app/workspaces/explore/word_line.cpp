#include "app/workspaces/explore/word_line.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/choices.h"
#include "core/base/words.h"
#include "core/metrics/metric.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
constexpr double unasked_patience = 2;  // seconds that an answer may take that nobody asked for
constexpr double still = 0.3;           // seconds that the question stays the same before it is asked
constexpr int passes_before = 3;        // that an answer takes besides one for each look

double passes_seconds(const PageContext& c, int looks) {
  return c.trace()->whole_milliseconds / 1000 * (passes_before + looks);
}
}  // namespace

bool WordLine::wanted(const PageContext& c) {
  const Stack stack = c.state().document.stack;
  return c.app.settings.word_answers && c.trace() && !c.captured() && !c.trace()->picture && stack != Stack::encoder &&
         stack != Stack::cross && c.results().model.model && !c.trace()->maps.empty() &&
         std::ranges::any_of(c.trace()->maps, &has_probabilities) && !c.app.explorer.lessons.lesson() &&
         !c.app.ui.presenting;
}

void WordLine::rest() {
  if (controller_ && controller_->running()) controller_->cancel();
  wished_.reset(), asked_.reset();
}

/// What is to be known now, if that is another question than before.
void WordLine::wish(WordRequest now) {
  // What is tried with a click is to be compared with the sentence, not to change it.
  if (found_ && !found_->looks.empty() && found_->request.row == now.row)
    std::erase_if(now.run.edits, [&](const Intervention& edit) {
      return Choices::alike(edit, without_look(found_->request, found_->looks.front()));
    });
  if (wished_ == now) return;
  wished_ = std::move(now);
  wished_at_ = ImGui::GetTime();
  allowed_ = false;
  asked_.reset();
}

/// Asks for what is pinned, once it has stood still for a moment: not at every step of a slider.
void WordLine::keep_up(const PageContext& c) {
  if (!controller_) controller_.emplace(c.jobs, "word", to_say("asking what the word looks at"));
  controller_->frame();
  const Index row = std::min<Index>(*c.state().document.query, static_cast<Index>(c.trace()->queries().size()) - 1);
  if (seen_ != c.results().run || !wished_ || wished_->row != row) wish({.run = c.results().run->request, .row = row});
  seen_ = c.results().run;
  if (std::exchange(model_, c.results().model_reading) != c.results().model_reading) asked_.reset();
  if (asked_ == wished_) return;
  const bool waits = ImGui::IsMouseDown(ImGuiMouseButton_Left) || ImGui::GetTime() - wished_at_ < still;
  if (waits) *c.ui.animate = true;
  if (waits || (!allowed_ && passes_seconds(c, 1) > unasked_patience)) return;
  asked_ = wished_;
  WordRequest request = *wished_;
  while (request.most_looks > 1 && !allowed_ && passes_seconds(c, request.most_looks) > unasked_patience)
    --request.most_looks;
  controller_->start(std::make_shared<WordSweep>(c.results().model, request),
                     [this](std::shared_ptr<const WordAnswer> known) { found_ = std::move(known); });
}

void WordLine::draw(const PageContext& c) {
  const bool pinned = c.state().document.query.has_value();
  if (pinned)
    keep_up(c);
  else
    rest();
  if (section_with_cross(c, said("THIS WORD"), said("what heads do from here"),
                         said("Put this away. Answers about a word, in the palette, brings it back")))
    c.app.settings.word_answers = false;
  if (!pinned) return note(c.ui, said("Click a word, in the text or beside the map: what do heads do from there?"));
  using Phase = SweepController::Phase;
  const Phase phase = controller_->phase();
  // Half-way the look that the answer needs most might be another; of the word before, it is there until then.
  const bool current = answered() && asked_ == wished_;
  if (current || (found_ && phase == Phase::running) || (found_ && !asked_)) {
    paragraph(c.ui, printable(found_->sentence.text(), 4000), current ? c.ui.theme.text : c.ui.theme.faint);
    if (current && ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(c.ui, {found_->provenance});
  } else {
    note(c.ui, phase == Phase::failed      ? controller_->error().c_str()
               : phase == Phase::cancelled ? said("Stopped.")
                                           : said("Heads are asked what they do from here …"));
  }
  ImGui::Dummy({0, c.ui.px(2)});
  things_to_look_at(c);
}

void WordLine::things_to_look_at(const PageContext& c) {
  Choices choice(c);
  const bool waiting = wished_ && asked_ != wished_ && !allowed_ && passes_seconds(c, 1) > unasked_patience;
  const bool stopped = controller_->phase() == SweepController::Phase::cancelled && asked_ == wished_;
  if ((waiting || stopped) && choice(stopped ? to_say("Ask again") : to_say("Ask what it looks at"))) {
    allowed_ = true;
    asked_.reset();
  }
  if (answered() && asked_ == wished_ && !found_->looks.empty()) {
    const WordLook& look = found_->looks.front();
    if (choice(say("Look at head {}", to_string(look.head)))) {
      c.editor.select(look.head);
      c.editor.pin(found_->request.row, look.key);
    }
    choice.change(without_look(found_->request, look), to_say("Hide it from this word"), to_say("Show it again"));
  }
  View& view = c.editor.view();
  if (view.head_view != HeadView::heads) {
    if (choice(to_say("This word in all heads"))) before_ = std::exchange(view.head_view, HeadView::heads);
  } else if (choice(to_say("Back to one head"))) {
    view.head_view = before_;
  }
  if (choice(to_say("Unpin"))) c.editor.pin(std::nullopt);
}

}  // namespace headscope
