#pragma once
// An edit as a form: which heads and positions, what happens there, its values; and the line of words that says the
// same, in sync both ways. New edits and those of the list are written in it. Thread rule: the UI thread.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/workspaces/explore/edit_fields.h"
#include "app/workspaces/page_context.h"
#include "core/edits/edit.h"

namespace headscope {

class EditDialog {
 public:
  /// Opens with the next draw(): a new edit of the heads that the side panel's scope means, or one of the list.
  void ask_new(const PageContext& c);
  void ask_change(const PageContext& c, std::size_t index);
  /// Heads are named "edit head 1.0", "edit layer 1", "edit column 0", tokens "edit token 5", kinds "edit: ablate".
  void draw(const PageContext& c);

 private:
  void take(const Intervention& edit);
  void choose(const PageContext& c, const EditForm& form);
  void compose(const PageContext& c);
  void read_line(const PageContext& c);
  std::optional<Intervention> checked(const PageContext& c);
  void confirm(const PageContext& c);

  bool kinds(const PageContext& c);
  bool where(const PageContext& c);
  bool heads(const PageContext& c);
  bool positions(const PageContext& c);
  bool tokens(const PageContext& c);
  std::string also() const;

  bool ask_ = false;
  std::optional<std::size_t> index_;  // of the list; nothing: a new one
  Intervention start_;                // what the form was opened with
  const EditForm* form_ = nullptr;
  std::map<const EditForm*, EditAnswers> answers_;  // also of forms that were left
  HeadTarget target_;
  std::vector<HeadId> more_;  // further heads: an edit for each
  HeadId reached_;            ///< in the grid of heads, by the arrow keys; -1 as in a row or column of all
  std::string line_, error_, search_;
  EditFields fields_;
  std::optional<int> dragged_from_;  // a token of the strip that went down
};

}  // namespace headscope
