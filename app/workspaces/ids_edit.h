#pragma once
// A field for token ids. What is typed counts as soon as all of it is ids of the vocabulary; until then the field says
// what is wrong, and the ids stay as they were. Thread rule: the UI thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/state/token_ids.h"
#include "app/widgets/prompt_edit.h"

namespace headscope {

class IdsEdit {
 public:
  struct Touch {
    bool changed = false, left = false;
    int hovered = -1;  ///< position of the id under the pointer; −1 = none
  };
  /// `ids` are taken over when they differ from what the field stands for (undo, a session). `ground`: behind every id;
  /// may be shorter.
  Touch draw(const Ui& ui, const char* id, std::span<const std::int32_t> ids, int vocabulary,
             std::span<const Color> ground, int most_lines);
  const std::vector<std::int32_t>& ids() const { return ids_; }
  void focus() { edit_.focus(); }

 private:
  PromptEdit edit_;
  std::string text_;
  std::vector<std::int32_t> ids_;
};

}  // namespace headscope
