#pragma once
// Controls for what an edit's words leave open (core/edits/edit_grammar.h): a slider and a box for a number, choices
// side by side or in a list, a token of the text, lines to write in. Knows kinds of values, no edits. Thread rule: the
// UI thread.

#include <map>

#include "app/widgets/prompt_edit.h"
#include "app/workspaces/page_context.h"
#include "core/edits/edit_grammar.h"

namespace headscope {

struct FieldTouch {
  bool changed = false;
  bool in_text = false;  ///< somebody writes a text of several lines: Enter belongs to it
};

class EditFields {
 public:
  /// Fields are named "##edit TAU", positions, choices and switches by their titles, alternatives by their words.
  FieldTouch draw(const PageContext& c, const EditPart& part, EditAnswers& answers);
  /// Another edit is filled in: texts begin anew.
  void forget() { texts_.clear(); }

 private:
  FieldTouch field(const PageContext& c, const EditPart& part, std::string& answer);
  std::map<int, PromptEdit> texts_;  // by the field's id
};

/// A button that names a token of the text, "5 ␣Anna", and a list to choose another from; below 0: from the end.
bool position_choice(const PageContext& c, const char* id, int& position);

}  // namespace headscope
