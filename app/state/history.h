#pragma once
// Undo and redo over whole documents, which are small values. Changes that belong together (typing, dragging a slider)
// become one step. Owned by the UI thread.

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "app/state/app_state.h"

namespace headscope {

class History {
 public:
  explicit History(std::size_t limit = 200) : limit_(limit) {}

  /// Call with the document as it was before a change. Changes in a row with the same `merge_key` ("" = never merge)
  /// and less than a second apart, or while the mouse button is held, are one step. Forgets what could be redone. `now`
  /// in seconds, any origin.
  void record(const Document& before, const std::string& merge_key, double now);
  /// The next change starts a new step whatever its key: the slider was let go, the editor lost the focus.
  void close_step() { merge_key_.clear(); }
  /// While a mouse button is down: a hand that rests on a slider has not let it go.
  void hold(bool held) { held_ = held; }

  bool can_undo() const { return !undo_.empty(); }
  bool can_redo() const { return !redo_.empty(); }
  /// Exchange `current` with the document before or after it; false when there is none.
  bool undo(Document& current);
  bool redo(Document& current);
  void clear();

  /// All documents that can be gone to, oldest first, `current` among them at [undoable()].
  std::vector<const Document*> documents(const Document& current) const;
  std::size_t undoable() const { return undo_.size(); }

 private:
  static bool step(std::deque<Document>& from, std::deque<Document>& to, Document& current);

  std::size_t limit_;
  std::deque<Document> undo_, redo_;
  std::string merge_key_;
  double last_ = 0;
  bool held_ = false;
};

}  // namespace headscope
