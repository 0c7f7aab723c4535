#include "core/engine/edit_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/attention/masks.h"
#include "core/base/overloaded.h"
#include "core/engine/edit_rows.h"

namespace headscope {

namespace {

/// How many of the rows that the edit reaches see a key after themselves.
int rows_looking_ahead(const SetMask& action, const HeadTarget& target, int tokens) {
  const auto rule = parse_mask(action.spec);
  const PositionRange at = target.positions.value_or(PositionRange{});
  int rows = 0;
  const int first = std::max(from_end(at.first, tokens), 0), last = std::min(from_end(at.last, tokens), tokens - 1);
  for (Index i = first; i <= last; ++i) rows += rule->keys(i, tokens).end > i + 1;
  return rows;
}

std::string head_name(std::optional<int> layer, int head) {
  return layer ? fmt::format("{}.{}", *layer, head) : fmt::format("*.{}", head);
}

}  // namespace

std::vector<std::string> edit_notes(const std::vector<Intervention>& edits, const ModelDims& dims, int tokens) {
  std::vector<std::string> notes;
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    const std::string where = text_of(edit.target);
    std::visit(
        Overloaded{
            [&](const SetMask& a) {
              if (const int rows = rows_looking_ahead(a, edit.target, tokens))
                notes.push_back(fmt::format(
                    "{}: mask {}: {} of {} rows see later tokens, which a decoder is never trained to do; losses "
                    "and next tokens there know what they should foretell",
                    where, a.spec, rows, tokens));
            },
            [&](const SetWeight& a) {
              if (from_end(a.key, tokens) > from_end(a.query, tokens))
                notes.push_back(fmt::format("{}: weight {} {}: the row sees a later token", where, a.query, a.key));
            },
            [&](const Ablate& a) {
              if (a.tells_future())
                notes.push_back(
                    fmt::format("{}: {}: takes from later positions of the text too", where, text_of(EditAction(a))));
            },
            [&](const Patch& a) {
              const int group = dims.group();
              if (!edit.target.head || group == 1 || (a.site != SiteKind::k && a.site != SiteKind::v)) return;
              std::vector<std::string> others;
              const int first = *edit.target.head / group * group;
              for (int head = first; head < first + group; ++head)
                if (head != *edit.target.head) others.push_back(head_name(edit.target.layer, head));
              notes.push_back(fmt::format("{}: patch {}: the key head is shared, so that it also reaches {}", where,
                                          a.site == SiteKind::k ? "k" : "v", fmt::join(others, ", ")));
            },
            [](const auto&) {}},
        edit.action);
  }
  return notes;
}

}  // namespace headscope
