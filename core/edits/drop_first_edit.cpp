#include "core/edits/drop_first_edit.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"

namespace headscope {

namespace {
/// Renormalised it is a rule; else weights are lost after the softmax.
class DropStep final : public EditStep {
 public:
  DropStep(EditPlace place, DropFirst drop) : EditStep(std::move(place)), drop_(drop) {}
  std::optional<HeldKind> held() const override { return HeldKind::drop_first; }
  RulePtr rule(int, RulePtr so_far, const AttentionRule*) const override {
    return drop_.renormalize ? without_first(std::move(so_far), drop_.count) : so_far;
  }
  bool acts(Site site) const override { return !drop_.renormalize && site.kind == SiteKind::pattern; }
  /// Tokens that were dropped stay so when a row's weights are written anew.
  bool holds_on() const override { return true; }
  void act(Site site, EditedTensor& edited) override {
    Tensor& pattern = edited.write();  // (head, query, key)
    for (Index head = 0; head < pattern.dim(0); ++head) {
      int from = 0;
      for (const HeldRows& part : pass().held({site.layer, static_cast<int>(head)})) {
        const int begin = std::max(from - pass().scene().first_row, first_row());
        from = part.end;
        if (part.of(HeldKind::drop_first) != this) continue;
        for (int row = begin; row < part.end - pass().scene().first_row; ++row) {
          std::fill_n(&pattern.ref(head, row, 0), std::min<Index>(drop_.count, pattern.dim(2)), 0.0f);
          pass().outputs.forget(head, row);
        }
      }
    }
  }

 private:
  DropFirst drop_;
};

class DropEdit final : public EditOf<DropFirst> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return drop_first_edit(); }
  std::string text() const override {
    return fmt::format("drop first {}{}", value().count, value().renormalize ? "" : " and its weight");
  }
  void check(const std::string& where) const override {
    need(value().count >= 1, where, "at least 1 token to drop", std::to_string(value().count));
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<DropStep>(std::move(place), value());
  }
  std::string needs_of_softmax() const override {
    return value().renormalize ? "rows that are renormalised (or: drop first COUNT and its weight)" : "";
  }
  bool row_by_row(int) const override { return true; }
  bool writes_weights() const override { return !value().renormalize; }
};
}  // namespace

const EditKind& drop_first_edit() {
  static const EditKind kind{
      {"drop first COUNT [and its weight]",
       "drop first",
       to_say("Attention weights"),
       to_say("Nobody sees the first tokens; the rest of each row is renormalised, or not."),
       DropFirst{},
       true,
       {{EditField::Kind::whole, "COUNT", to_say("Tokens"), to_say("from the beginning of the text"), 1, 16}}},
      [](EditWords& words) -> EditAction {
        const int count = words.number<int>();
        return DropFirst{count, !words.take("and its weight")};
      }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(DropFirst value) {
  return std::make_shared<DropEdit>(value);
}

}  // namespace headscope
