#pragma once
// What is on the screen as a step of a lesson, to be written on: the editor of lessons is any editor of texts.

#include <string>

#include "app/state/session.h"

namespace headscope {

/// "## …" with its block `show`: model, text, edits, head, row, cell, view, workspace and page of the session. What a
/// line cannot hold (a text of several lines, token ids) goes into `session`.
/// Throws Error when text, source or paths are not UTF-8.
std::string lesson_step_text(const Session& session);

}  // namespace headscope
