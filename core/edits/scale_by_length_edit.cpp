#include "core/edits/scale_by_length_edit.h"

#include <fmt/format.h>

#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"

namespace headscope {

namespace {
class LengthStep final : public EditStep {
 public:
  using EditStep::EditStep;
  std::optional<HeldKind> held() const override { return HeldKind::length; }
  RulePtr rule(int, RulePtr so_far, const AttentionRule* visible) const override {
    const Index n = pass().scene().rows(), keys = pass().scene().keys();
    return length_scaled_rule(std::move(so_far), seen_keys(*visible, n, keys), action().as<ScaleByLength>()->trained);
  }
  bool changes_scores() const override { return true; }
};

class LengthEdit final : public EditOf<ScaleByLength> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return scale_by_length_edit(); }
  std::string text() const override { return fmt::format("scale by length {}", value().trained); }
  void check(const std::string& where) const override {
    need(value().trained >= 2, where, "a trained length from 2", std::to_string(value().trained));
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override { return step_of<LengthStep>(std::move(place)); }
  std::string needs_of_softmax() const override { return "scores before a softmax"; }
  bool row_by_row(int) const override { return true; }
};
}  // namespace

const EditKind& scale_by_length_edit() {
  static const EditKind kind{{"scale by length M",
                              "scale by length",
                              to_say("Attention weights"),
                              to_say("Scores times ln n / ln M in a row of n keys: entropy does not grow with length."),
                              ScaleByLength{},
                              true,
                              {{EditField::Kind::whole, "M", to_say("Trained length"),
                                to_say("tokens of a row that stays as it is"), 2, 4096, true}}},
                             [](EditWords& words) -> EditAction { return ScaleByLength{words.number<int>()}; }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(ScaleByLength value) {
  return std::make_shared<LengthEdit>(value);
}

}  // namespace headscope
