#include "app/workspaces/explore/explore_workspace.h"

#include <algorithm>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/head_cells.h"
#include "core/base/words.h"

namespace headscope {

void ExploreWorkspace::left(const PageContext& c) {
  const bool focus = std::exchange(c.app.ui.focus_prompt, false);
  if (c.captured() || c.app.explorer.captures.watching()) {
    draw_captures(c, captured_);
  } else {
    if (focus) prompt_.focus();
    if (reads_pictures(c.results()))
      picture_.draw(c);
    else
      prompt_.draw(c);
    stack_bar(c);
  }
  atlas_.draw(c);
  depth_.draw(c);
}

void ExploreWorkspace::middle(const PageContext& c) {
  if (std::exchange(c.app.ui.reset_zoom, false)) head_.reset_zoom();
  told(c);
  head_.draw(c);
}

/// Sentences above the head. Whichever they are, and however long, the map below keeps its place.
void ExploreWorkspace::told(const PageContext& c) {
  const float begin = ImGui::GetCursorPosY(), width = ImGui::GetContentRegionAvail().x;
  const bool pinned = c.state().document.query.has_value();
  const bool word = WordLine::wanted(c) && (pinned ? !first_.speaks_of_pinned(c) : !first_.wanted(c));
  if (word)
    word_.draw(c);
  else
    word_.rest(), first_.draw(c);
  const float used = ImGui::GetCursorPosY() - begin;
  if (width != told_width_ || used <= 0) told_height_ = 0;
  told_width_ = width;
  told_height_ = std::max(told_height_, used);
  if (used > 0) ImGui::Dummy({0, told_height_ - used + c.ui.px(6)});
}

void ExploreWorkspace::right(const PageContext& c) {
  if (!c.trace())
    return empty_state(c.ui, said("No head is chosen"), said("Its numbers, temperature and mask will stand here."));
  const bool add_edit = std::exchange(c.app.ui.add_edit, false);
  if (c.captured()) {
    draw_facts(c);
    section(c.ui, said("CAPTURED ELSEWHERE"));
    const UseFont font(c.ui, c.ui.body());
    paragraph(
        c.ui,
        said("These are weights that another program wrote down. Temperature, mask, edits and next tokens need the "
             "model that made them."),
        c.ui.theme.muted);
    return;
  }
  if (add_edit) edits_.add_one();
  softmax_.draw(c);
  mask_.draw(c);
  edits_.draw(c);
  // Who has changed something looks for what follows, also while an edit is switched off to compare; who only reads,
  // for what the head is.
  const bool edited = !c.state().document.edits.empty();
  if (edited) next_.draw(c);
  draw_facts(c);
  if (!edited) next_.draw(c);
}

}  // namespace headscope
