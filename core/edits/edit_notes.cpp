#include "core/edits/edit_notes.h"

#include <fmt/ranges.h>

#include "core/base/words.h"
#include "core/edits/edit.h"
#include "core/trace/mixer_words.h"

namespace headscope {

std::vector<std::string> edit_notes(const std::vector<Intervention>& edits, const ModelInfo& model, int tokens) {
  std::vector<std::string> notes;
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    const std::string note = edit.action->note(edit.target, model, tokens);
    if (const ModelDims& dims = model.dims;
        !edit.target.layer && dims.hybrid() && !edit.action->needs_of_softmax().empty()) {
      std::vector<int> others;
      for (int layer = 0; layer < dims.layers; ++layer)
        if (!dims.attends(layer)) others.push_back(layer);
      notes.push_back(text_of(edit.target) + ": " +
                      say("{}: layers that do not attend ({}) stay as they are: {}", text_of(edit.action),
                          said(state_words(dims)), fmt::format("{}", fmt::join(others, ", "))));
    }
    if (!note.empty()) notes.push_back(text_of(edit.target) + ": " + note);
  }
  return notes;
}

}  // namespace headscope
