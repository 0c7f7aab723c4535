#pragma once
// What is on the screen as a step of a lesson, to be written on: the editor of lessons is any editor of texts. Shown
// again it is the same state: what the lines of a block have no words for stands in its `session`.

#include <string>

#include "app/state/session.h"

namespace headscope {

/// The block `show`: model, text, edits, head, row, cell, view, workspace and page of the session in lines, and in
/// `session` what else differs from what these lines show: of the document, the view, the controls of the page that is
/// shown, and what was generated where that is shown. The window's own (theme, panels, tool in hand) is left out.
/// Throws Error when text, source or paths are not UTF-8, and on a page of mechanisms that shows matrices made by hand:
/// no session file has them.
std::string lesson_show_block(const Session& session);

/// "## A step" with a line to be written over, and that block.
std::string lesson_step_text(const Session& session);

}  // namespace headscope
