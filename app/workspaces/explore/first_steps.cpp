#include "app/workspaces/explore/first_steps.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/state/workspace_list.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/choices.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double patience = 2;  // seconds that a sentence may take, each time the text changes

}  // namespace

const Finding* FirstSteps::cause() const {
  // Half-way the largest of what is known might not be the largest.
  if (!controller_ || controller_->phase() != SweepController::Phase::finished) return nullptr;
  if (!found_ || found_->all.empty() || found_->all.front().kind != Finding::Kind::cause) return nullptr;
  return &found_->all.front();
}

/// Asks again whenever the text or the model is another. The edits of the person who tries things are not what the
/// sentence is about.
void FirstSteps::keep_up(const PageContext& c) {
  if (!controller_) controller_.emplace(c.jobs, "first steps", to_say("looking for the head that the answer needs"));
  controller_->frame();
  if (!c.results().run || !c.results().model.model || c.captured()) return asked_.reset(), found_.reset();
  FindingsRequest now{.run = c.results().run->request, .most_tokens = 0};
  now.run.edits.clear();
  if (asked_ == now && model_ == c.results().model_reading) return;
  const ModelDims& dims = c.trace()->model.dims;
  found_.reset();
  asked_ = now, model_ = c.results().model_reading;
  if (!choices_) choices_ = c.editor.choices();
  if (c.trace()->whole_milliseconds / 1000 * 0.5 * dims.all_heads() > patience) return controller_->cancel();
  controller_->start(std::make_shared<FindingsSweep>(c.results().model, now),
                     [this](std::shared_ptr<const Findings> known) { found_ = std::move(known); });
}

/// Until somebody chooses a head: the sentence's own, so that sentence and picture are about the same.
void FirstSteps::show_its_head(const PageContext& c) {
  const Finding* const found = cause();
  if (!found || !found->head || choices_ != c.editor.choices() || c.state().document.selected == *found->head) return;
  c.editor.adjust([head = *found->head](Document& document) { document.selected = head; });
}

bool FirstSteps::speaks_of_pinned(const PageContext& c) const {
  if (!c.app.settings.first_steps) return false;
  const Finding* const found = cause();
  return found && c.results().run && found_->request.run.text == c.results().run->request.text &&
         !found->cells.empty() && found->head == c.state().document.selected &&
         found->cells.front().query == c.state().document.query;
}

bool FirstSteps::wanted(const PageContext& c) {
  // What it tells is of the heads that answer: an encoder-decoder's decoder.
  const Stack stack = c.state().document.stack;
  return c.app.settings.first_steps && c.trace() && stack != Stack::encoder && stack != Stack::cross &&
         !c.app.explorer.lessons.lesson();  // which says what to do
}

void FirstSteps::draw(const PageContext& c) {
  if (!wanted(c)) return;
  keep_up(c);
  show_its_head(c);
  if (section_with_cross(c, said("FIRST STEPS"), said("what this model does with this text"),
                         said("Put this away. First steps, in the palette, brings it back")))
    c.app.settings.first_steps = false;
  sentence(c);
  ImGui::Dummy({0, c.ui.px(2)});
  things_to_try(c);
}

void FirstSteps::sentence(const PageContext& c) const {
  const Finding* found = cause();
  if (found) {
    paragraph(c.ui, printable(found->sentence.text(), 4000), c.ui.theme.text);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(c.ui, {printable(found->looks.text()), found->provenance});
    return;
  }
  note(c.ui,
       controller_ && controller_->running()
           ? said("Every head is taken out once, to see which one the answer needs …")
           : said("Each square of the atlas on the left is a head: rows look, columns are looked at. Click one."));
}

void FirstSteps::things_to_try(const PageContext& c) {
  Choices choice(c);
  if (const Finding* found = cause(); found && found->head) {
    const HeadId head = *found->head;
    if (choice(say("Look at head {}", to_string(head)))) {
      c.editor.select(head);
      if (!found->cells.empty()) c.editor.pin(found->cells.front().query, found->cells.front().key);
    }
    choice.change({{head.layer, head.head}, FindingsRequest{}.ablate}, to_say("Take it out"), to_say("Put it back"));
  }
  if (choice(to_say("Five findings"))) {
    c.app.settings.pages["Analyse"] = "scan";
    c.app.ui.workspace = workspace_index("Analyse");
  }
  if (choice(to_say("Take a lesson"))) c.app.ui.lessons = true;
  if (choice(to_say("A circuit made by hand"))) c.app.explorer.files.open_example("induction");
}

}  // namespace headscope
