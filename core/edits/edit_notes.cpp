#include "core/edits/edit_notes.h"

#include "core/edits/edit.h"

namespace headscope {

std::vector<std::string> edit_notes(const std::vector<Intervention>& edits, const ModelInfo& model, int tokens) {
  std::vector<std::string> notes;
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    const std::string note = edit.action->note(edit.target, model, tokens);
    if (!note.empty()) notes.push_back(text_of(edit.target) + ": " + note);
  }
  return notes;
}

}  // namespace headscope
