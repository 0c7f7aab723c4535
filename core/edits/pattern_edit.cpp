#include "core/edits/pattern_edit.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_step.h"

namespace headscope {

namespace {
using Pattern = ForcePattern::Shape;
constexpr NamedValue<Pattern> shapes[] = {
    {"uniform", Pattern::uniform}, {"previous", Pattern::previous}, {"self", Pattern::self}, {"first", Pattern::first}};

class PatternStep final : public EditStep {
 public:
  PatternStep(EditPlace place, Pattern shape) : EditStep(std::move(place)), shape_(shape) {}
  std::optional<HeldKind> held() const override { return HeldKind::pattern; }
  RulePtr rule(int, RulePtr so_far, const AttentionRule*) const override {
    switch (shape_) {
      case Pattern::uniform:
        return scaled_rule(
            std::move(so_far), [](Index) { return 0.0f; }, "uniform");
      case Pattern::previous:
        return one_key_rule(
            std::move(so_far), [](Index query) { return std::max<Index>(query - 1, 0); }, "previous token");
      case Pattern::self:
        return one_key_rule(
            std::move(so_far), [](Index query) { return query; }, "self");
      case Pattern::first:
        return one_key_rule(
            std::move(so_far), [](Index) { return Index{0}; }, "first token");
    }
    return so_far;
  }
  bool changes_scores() const override { return shape_ == Pattern::uniform; }

 private:
  Pattern shape_;
};

class PatternEdit final : public EditOf<ForcePattern> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return pattern_edit(); }
  std::string text() const override { return fmt::format("pattern {}", name_in(shapes, value().shape)); }
  void check(const std::string&) const override {}
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<PatternStep>(std::move(place), value().shape);
  }
  bool row_by_row(int) const override { return true; }
  std::string needs_of_softmax() const override { return "a softmax, whose scores a rule can give"; }
  std::string needs_of_one_text() const override {
    const bool by_distance = value().shape == Pattern::previous || value().shape == Pattern::self;
    return by_distance ? "queries and keys of one text, or pattern uniform or first" : "";
  }
};
}  // namespace

const EditKind& pattern_edit() {
  static const EditKind kind{{"pattern uniform | previous | self | first", "pattern", to_say("Attention weights"),
                              to_say("The head looks by rule, not by its queries and keys."), ForcePattern{}},
                             [](EditWords& words) -> EditAction { return ForcePattern{words.one_of(shapes)}; }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(ForcePattern value) {
  return std::make_shared<PatternEdit>(value);
}

}  // namespace headscope
