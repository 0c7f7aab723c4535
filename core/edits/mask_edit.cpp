#include "core/edits/mask_edit.h"

#include <algorithm>

#include "core/attention/masks.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"

namespace headscope {

namespace {
/// Whether row i of the mask sees nothing after i and is the same in longer texts.
bool is_causal(const AttentionRule& rule, int context) {
  for (Index i = 0; i < context; ++i) {
    const KeyRange now = rule.keys(i, i + 1), later = rule.keys(i, context);
    if (later.end > i + 1 || now.begin != later.begin || now.end != later.end) return false;
  }
  return true;
}

/// Whether it says of keys, or of cells one by one, who sees whom.
bool knows_no_distance(const std::string& spec) {
  for (std::size_t at = 0; at < spec.size();) {
    std::size_t end = at;
    while (end < spec.size() && spec[end] >= 'a' && spec[end] <= 'z') ++end;
    const std::string word = spec.substr(at, end - at);
    at = end + 1;
    if (word.empty() || word == "and" || word == "or" || word == "not" || word == "seed") continue;
    if (word != "full" && word != "hidden" && word != "cells" && word != "padding") return false;
  }
  return true;
}

class MaskStep final : public EditStep {
 public:
  MaskStep(EditPlace place, const std::string& spec)
      : EditStep(std::move(place)),
        spec_(spec),
        rule_(parse_mask(spec, this->place().where())),
        hashes_(hashes_vectors(spec) && pass().scene().model) {}
  std::optional<HeldKind> held() const override { return HeldKind::mask; }
  RulePtr rule(int head, RulePtr, const AttentionRule*) const override {
    if (!hashes_ || !q_.defined()) return rule_;
    const MaskVectors vectors{q_.select(1, head), k_.select(1, head / (q_.dim(1) / k_.dim(1)))};
    return parse_mask(spec_, "mask", &vectors);
  }
  // What hashes looks at queries and keys as they meet.
  bool sees(Site site) const override {
    return hashes_ && (pass().meeting_q(site.kind) || pass().meeting_k(site.kind));
  }
  void see(Site site, const Tensor& value) override { (pass().meeting_q(site.kind) ? q_ : k_) = value; }

 private:
  std::string spec_;
  RulePtr rule_;
  bool hashes_;
  Tensor q_, k_;
};

class MaskEdit final : public EditOf<SetMask> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return mask_edit(); }
  std::string text() const override { return "mask " + value().spec; }
  void check(const std::string& where) const override { parse_mask(value().spec, where); }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<MaskStep>(std::move(place), value().spec);
  }
  /// Whether rows that it reaches see a key after themselves, and how many.
  std::string note(const HeadTarget& target, const ModelInfo& model, int tokens) const override {
    if (model.objective != Objective::next_token) return "";
    const auto rule = parse_mask(value().spec);
    const PositionRange at = target.positions.value_or(PositionRange{});
    const int first = std::max(from_end(at.first, tokens), 0), last = std::min(from_end(at.last, tokens), tokens - 1);
    int rows = 0;
    for (Index i = first; i <= last; ++i) rows += rule->keys(i, tokens).end > i + 1;
    if (rows == 0) return "";
    return say(
        "mask {}: {} of {} rows see later tokens, which most decoders are never trained to do; losses and next tokens "
        "there "
        "know what they should foretell",
        value().spec, rows, tokens);
  }
  std::string needs_of_one_text() const override {
    return knows_no_distance(value().spec)
               ? ""
               : "queries and keys of one text, or a mask of full, hidden, cells and padding";
  }
  std::string needs_of_softmax() const override {
    return hashes_vectors(value().spec) ? "queries and keys, whose hashes tell who sees whom" : "";
  }
  bool row_by_row(int context) const override {
    // What hashes queries and keys needs those of the tokens before, too.
    return !hashes_vectors(value().spec) && is_causal(*parse_mask(value().spec, "mask"), context);
  }
};
}  // namespace

const EditKind& mask_edit() {
  static const EditKind kind{{"mask SPEC", "mask", to_say("Attention weights"),
                              to_say("Another mask than the causal one."), SetMask{"window 4"}},
                             [](EditWords& words) -> EditAction { return SetMask{std::string(words.all())}; }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(SetMask value) {
  return std::make_shared<MaskEdit>(std::move(value));
}

}  // namespace headscope
