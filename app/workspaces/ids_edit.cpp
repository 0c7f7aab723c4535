#include "app/workspaces/ids_edit.h"

#include <algorithm>

#include "app/widgets/paragraph.h"
#include "core/base/words.h"

namespace headscope {

IdsEdit::Touch IdsEdit::draw(const Ui& ui, const char* id, std::span<const std::int32_t> ids, int vocabulary,
                             std::span<const Color> ground, int most_lines) {
  if (!std::ranges::equal(ids, ids_)) {
    ids_.assign(ids.begin(), ids.end());
    text_ = token_ids_text(ids);
  }
  WrittenIds written = read_token_ids(text_, vocabulary);
  std::vector<TextMark> marks;
  for (std::size_t i = 0; i < std::min(ground.size(), written.stretches.size()); ++i)
    if (ground[i].a) marks.push_back({written.stretches[i].begin, written.stretches[i].end, ground[i]});
  const std::string hint = say("Token ids from 0 to {}, such as 5 17 3", vocabulary - 1);
  const PromptTouch touch = edit_.draw(ui, id, text_, marks, most_lines, hint.c_str());
  Touch out;
  out.left = touch.left;
  if (touch.changed) {
    text_ = edit_.text();
    written = read_token_ids(text_, vocabulary);
    if (written.error.empty() && written.ids != ids_) {
      ids_ = written.ids;
      out.changed = true;
    }
  }
  if (touch.hovered)
    for (std::size_t i = 0; i < written.stretches.size(); ++i)
      if (*touch.hovered >= written.stretches[i].begin && *touch.hovered < written.stretches[i].end)
        out.hovered = static_cast<int>(i);
  if (!written.error.empty()) {
    error_text(ui, written.error);
    ui.name(written.error, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  }
  return out;
}

}  // namespace headscope
