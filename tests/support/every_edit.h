#pragma once
// Every form of every edit as a line of words, by the tree of its form.

#include <functional>
#include <string>
#include <vector>

#include "core/edits/edit.h"
#include "core/edits/edit_grammar.h"

namespace headscope::testing {

/// The part and all below it.
void visit(const EditPart& part, const std::function<void(const EditPart&)>& see);
/// Answers in which the part with this id is one that is written. REQUIREs that it is there.
void open(const EditPart& root, int id, EditAnswers& answers);
/// Answers to begin with, and "Another text." where one is needed.
EditAnswers first_answers(const EditForm& form);

/// Each alternative of each choice and each optional part, the rest as the form begins with; each line once.
std::vector<std::string> every_edit_line();

}  // namespace headscope::testing
