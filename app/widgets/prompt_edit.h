#pragma once
// A text field of several lines that wraps long ones: caret, selection, mouse, clipboard, input methods, and stretches
// of the text that can be marked and hovered. As high as its text, between two bounds; then it scrolls. Thread rule:
// the UI thread.

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "app/widgets/text_edit.h"
#include "app/widgets/ui.h"

namespace headscope {

/// A stretch of the text, in bytes, with what is drawn behind and below it.
struct TextMark {
  std::size_t begin = 0, end = 0;
  Color ground{0, 0, 0, 0}, underline{0, 0, 0, 0};
};

struct PromptTouch {
  bool changed = false;
  bool left = false;                   ///< the field was let go in this frame
  std::optional<std::size_t> hovered;  ///< byte under the pointer
};

class PromptEdit {
 public:
  /// `text` is taken over when it differs from what the field holds (undo, a session). Lines: 3 … `most_lines`.
  PromptTouch draw(const Ui& ui, const char* id, const std::string& text, std::span<const TextMark> marks,
                   int most_lines, const char* hint);
  const std::string& text() const { return edit_.text(); }
  bool active() const { return active_; }
  void focus() { focus_ = true; }

 private:
  bool keys();
  TextEdit edit_;
  std::string wrapped_;                 ///< the text of the lines that edit_ holds
  std::pair<float, float> wrap_{0, 0};  ///< their width and type size
  bool active_ = false, focus_ = false, shown_ = false;
  bool reached_ = false;  // by Tab
  float scroll_ = 0;
};

}  // namespace headscope
