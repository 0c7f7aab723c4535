#include "core/edits/mechanism_edit.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "core/attention/mechanism.h"
#include "core/attention/positions/disentangled.h"
#include "core/attention/rule_edits.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"

namespace headscope {

namespace {
/// Puts the mechanism's effective weights into the pattern, and keeps its output for the site z where that is more than
/// weights · v.
class MechanismStep final : public EditStep {
 public:
  MechanismStep(EditPlace place, const std::string& spec)
      : EditStep(std::move(place)), choice_(parse_mechanism(spec, this->place().where())) {}
  bool acts(Site site) const override { return site.kind == SiteKind::pattern; }
  bool writes_rows() const override { return true; }
  void act(Site site, EditedTensor& edited) override {
    const EditScene& scene = pass().scene();
    Tensor& pattern = edited.write();  // (head, query, key)
    const auto whole = heads_of_layer(q_, k_, v_, site.layer, scene.dims.layers);
    for (int head = 0; head < scene.dims.heads; ++head) {
      if (!target().reaches({site.layer, head})) continue;
      check_scores_heard({site.layer, head});
      check_sinks({site.layer, head});
      const EditPass::Looks& looks = pass().looks(head);
      MechanismInput in = input_of_head(whole, head);
      in.scale = looks.rule.scale, in.temperature = looks.temperature, in.stop = scene.stop;
      in.rule = mechanism().score_edits == ScoreEdits::all ? met_rule(looks.rule, in.q, in.k, 0)
                                                           : seen_by({site.layer, head});
      const MechanismResult result = mechanism().run(in, choice_.values, Detail::weights);
      for (Index i = first(); i <= last(); ++i) {
        for (Index key = 0; key < result.weights.dim(1); ++key) pattern.ref(head, i, key) = result.weights.at(i, key);
        if (result.output_is_weights_times_v)
          pass().outputs.forget(head, i);
        else
          pass().outputs.keep(head, i, result.output);
      }
    }
  }
  /// Queries, keys and values as they meet; and z, where own outputs are put back.
  bool sees(Site site) const override {
    return pass().meeting_q(site.kind) || pass().meeting_k(site.kind) || site.kind == SiteKind::v ||
           site.kind == SiteKind::z;
  }
  void see(Site site, const Tensor& value) override {
    if (pass().meeting_q(site.kind)) q_ = value;
    if (pass().meeting_k(site.kind)) k_ = value;
    if (site.kind == SiteKind::v) v_ = value;
  }

 private:
  const Mechanism& mechanism() const { return *choice_.mechanism; }

  /// Who sees whom, which is all that it asks for; and one that runs along the text must not stumble over the mask of
  /// other rows.
  RulePtr seen_by(HeadId head) const {
    const RulePtr& usual = pass().looks(head.head).usual;
    std::vector<RuleOfRows> parts;
    int from = 0;
    for (const HeldRows& part : pass().held(head)) {
      const bool other = mechanism().needs_causal && (part.end <= first() || from > last());
      parts.push_back({part.end, other ? usual : pass().seen_rule(part, head.head, usual)});
      from = part.end;
    }
    return rule_by_rows(std::move(parts));
  }

  /// Throws Error when the model's own softmax has a sink that the mechanism would leave out.
  void check_sinks(HeadId head) const {
    if (mechanism().knows_sinks || !std::isfinite(pass().looks(head.head).rule.rule->sink(first()))) return;
    throw Error(
        place().where(), fmt::format("a softmax without a learned sink, of which {} knows nothing", mechanism().id),
        fmt::format("head {} of {}, which has one", to_string(head), pass().model(place().where()).config().name),
        "softmax takes it in");
  }

  /// Throws Error when an edit of scores reaches rows whose mechanism has no scores that could follow it.
  void check_scores_heard(HeadId head) const {
    if (mechanism().score_edits == ScoreEdits::all) return;
    const bool tau_in_scale = pass().looks(head.head).temperature != 1;
    int from = 0;
    for (const HeldRows& part : pass().held(head)) {
      const bool met = part.end > first() && from <= last();
      from = part.end;
      const EditStep* unheard = pass().score_edit(part);
      if (!unheard && temperature_of(part) != 1 && !(mechanism().score_edits == ScoreEdits::scaled && tau_in_scale))
        unheard = part.of(HeldKind::temperature);
      if (!met || !unheard) continue;
      throw Error(place().where(),
                  fmt::format("a head whose scores no other edit changes: {} has {}", mechanism().id,
                              mechanism().score_edits == ScoreEdits::none
                                  ? "no softmax of scores"
                                  : "no score of every cell, only one scale for all of them"),
                  fmt::format("\"{}\" in head {}", describe(unheard->edit()), to_string(head)),
                  "take one of the two out, or let them reach different heads or positions");
    }
  }

  MechanismChoice choice_;
  Tensor q_, k_, v_;  // of the layer that is being computed; q and k after rotation
};

class MechanismEdit final : public EditOf<SwapMechanism> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return mechanism_edit(); }
  std::string text() const override { return "mechanism " + value().spec; }
  void check(const std::string& where) const override {
    const Mechanism& mechanism = *parse_mechanism(value().spec, where).mechanism;
    need(!mechanism.study, where, "a mechanism that turns q, k and v into an output",
         fmt::format("{}, a study of numbers", mechanism.id));
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<MechanismStep>(std::move(place), value().spec);
  }
  bool writes_weights() const override { return true; }
  std::string needs_of_softmax() const override { return "heads with queries, keys and values"; }
  std::string needs_of_one_text() const override {
    return "attention of a text to itself, which mechanisms are written for";
  }
};
}  // namespace

const EditKind& mechanism_edit() {
  static const EditKind kind{{"mechanism ID [NAME=VALUE …]", "mechanism", to_say("Attention weights"),
                              to_say("Another mechanism in place of softmax attention."), SwapMechanism{}},
                             [](EditWords& words) -> EditAction {
                               return SwapMechanism{text_of(parse_mechanism(words.all(), "edit: mechanism"))};
                             }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(SwapMechanism value) {
  return std::make_shared<MechanismEdit>(std::move(value));
}

}  // namespace headscope
