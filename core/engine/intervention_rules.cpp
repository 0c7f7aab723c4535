// How a head looks under all the edits that hold in its rows, and what follows from that in a pass: the rule for the
// scores, positions where they stand, another mechanism in place of softmax.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/attention/masks.h"
#include "core/attention/mechanism.h"
#include "core/attention/rule_edits.h"
#include "core/base/error.h"
#include "core/engine/edit_rows.h"
#include "core/engine/intervention_tap.h"
#include "core/engine/mechanism_input.h"

namespace headscope {

std::shared_ptr<const AttentionRule> InterventionTap::mask_of(const Step& step, int head) const {
  if (!step.hashes || !meeting_.q.defined()) return step.mask;
  const MaskVectors vectors{meeting_.q.select(1, head), meeting_.k.select(1, scene_.dims.kv_of(head))};
  return parse_mask(std::get<SetMask>(step.action).spec, "mask", &vectors);
}

std::vector<HeldRows> InterventionTap::held(HeadId head) const {
  return held_rows(placed_, static_cast<int>(scene_.ids.size()),
                   [&](const HeadTarget& target) { return target.reaches(head); });
}

template <class Action>
const Action* InterventionTap::action(const HeldRows& rows, HeldKind kind) const {
  const int at = rows.of(kind);
  return at < 0 ? nullptr : &std::get<Action>(steps_[static_cast<std::size_t>(at)].action);
}

RulePtr InterventionTap::visible_rule(const HeldRows& rows, int head, RulePtr rule) const {
  if (const int mask = rows.of(HeldKind::mask); mask >= 0) rule = mask_of(steps_[static_cast<std::size_t>(mask)], head);
  if (const auto* drop = action<DropFirst>(rows, HeldKind::drop_first); drop && drop->renormalize)
    rule = without_first(std::move(rule), drop->count);
  return rule;
}

RulePtr InterventionTap::score_rule(const HeldRows& rows, int head, RulePtr visible) const {
  RulePtr rule = visible;
  for (const HeldKind kind : {HeldKind::positions, HeldKind::alibi_on_top, HeldKind::t5_on_top})
    if (const auto* positions = action<SetPositions>(rows, kind))
      rule = positions_rule(*positions, head, scene_.dims.heads, std::move(rule));
  if (const auto* force = action<ForcePattern>(rows, HeldKind::pattern)) rule = shaped(std::move(rule), force->shape);
  if (const auto* length = action<ScaleByLength>(rows, HeldKind::length)) {
    const auto n = static_cast<Index>(scene_.ids.size());
    rule = length_scaled_rule(std::move(rule), seen_keys(*visible, n, n), length->trained);
  }
  return rule;
}

double InterventionTap::temperature(const HeldRows& rows) const {
  const auto* set = action<SetTemperature>(rows, HeldKind::temperature);
  return set ? set->tau : 1;
}

std::optional<HeldKind> InterventionTap::score_edit(const HeldRows& rows) const {
  for (const HeldKind kind : {HeldKind::positions, HeldKind::alibi_on_top, HeldKind::t5_on_top})
    if (const auto* positions = action<SetPositions>(rows, kind))
      if (positions->method == SetPositions::Method::alibi || positions->method == SetPositions::Method::t5)
        return kind;
  if (const auto* force = action<ForcePattern>(rows, HeldKind::pattern);
      force && force->shape == ForcePattern::Shape::uniform)
    return HeldKind::pattern;
  if (rows.of(HeldKind::length) >= 0) return HeldKind::length;
  return std::nullopt;
}

HeadRule InterventionTap::head_rule(HeadId id, HeadRule usual) const {
  const int head = id.head;
  const std::vector<HeldRows> parts = held(id);
  // One temperature for all rows goes into the scale where nothing is added to the scores: rules stay plain. Else it
  // divides what was added, too.
  const bool in_scale = std::ranges::all_of(parts, [&](const HeldRows& part) {
    return temperature(part) == temperature(parts.front()) && !score_edit(part);
  });
  std::vector<RuleOfRows> rules;
  for (const HeldRows& part : parts) {
    RulePtr rule = score_rule(part, head, visible_rule(part, head, usual.rule));
    if (const double tau = temperature(part); tau != 1 && !in_scale)
      rule = scaled_rule(
          std::move(rule), [tau](Index) { return static_cast<float>(1 / tau); }, fmt::format("temperature {}", tau));
    rules.push_back({part.end, std::move(rule)});
  }
  looks_.resize(static_cast<std::size_t>(scene_.dims.heads));
  Looks& looks = looks_[static_cast<std::size_t>(head)];
  looks.usual = usual.rule;
  if (in_scale && temperature(parts.front()) != 1) {
    looks.temperature = static_cast<float>(temperature(parts.front()));
    usual.scale = static_cast<float>(static_cast<double>(usual.scale) / temperature(parts.front()));
  } else {
    looks.temperature = 1;
  }
  usual.rule = rule_by_rows(std::move(rules));
  looks.rule = usual;
  return usual;
}

void InterventionTap::place(Site site, Tensor& value) {
  const Tensor given = value.copy();
  const auto n = static_cast<int>(scene_.ids.size());
  const auto rows_of = [&](const std::vector<HeldRows>& parts, int head, std::pair<Index, Index> heads) {
    int first = 0;
    for (const HeldRows& part : parts) {
      const auto* shift = action<SetPositions>(part, HeldKind::shift);
      const PositionsHeld positions{action<SetPositions>(part, HeldKind::positions), shift ? shift->shift : 0};
      const int from = std::max(first, scene_.first_row), last = part.end - 1;
      first = part.end;
      if (from > last || !positions_act_at(positions, scene_.model->config().position, site.kind)) continue;
      if (site.kind == SiteKind::attn_scores)
        rescore_in_chunks(before_rotation_, scene_.model->config(), positions.own->chunk, head,
                          looks_[static_cast<std::size_t>(head)].rule, from, last, value);
      else
        set_positions(positions, *scene_.model, site.kind, before_rotation_, given, heads,
                      {from - scene_.first_row, last - scene_.first_row, scene_.first_row}, value);
    }
  };
  if (value.rank() != 3)  // embeddings: of the whole model
    return rows_of(held_rows(placed_, n, [](const HeadTarget& target) { return !target.layer && !target.head; }), 0,
                   {});
  const Index heads = site.kind == SiteKind::attn_scores ? value.dim(0) : value.dim(1);
  for (Index each = 0; each < heads; ++each) {
    const auto head = static_cast<int>(each * (scene_.dims.heads / heads));
    rows_of(held({site.layer, head}), head, {each, each + 1});
  }
}

void InterventionTap::check_scores_heard(const Step& step, HeadId head) const {
  const Mechanism& mechanism = *step.swap->mechanism;
  if (mechanism.score_edits == ScoreEdits::all) return;
  const bool tau_in_scale = looks_[static_cast<std::size_t>(head.head)].temperature != 1;
  int first = 0;
  for (const HeldRows& part : held(head)) {
    const bool met = part.end > step.first && first <= step.last;
    first = part.end;
    std::optional<HeldKind> kind = score_edit(part);
    if (!kind && temperature(part) != 1 && !(mechanism.score_edits == ScoreEdits::scaled && tau_in_scale))
      kind = HeldKind::temperature;
    if (!met || !kind) continue;
    const Step& unheard = steps_[static_cast<std::size_t>(part.of(*kind))];
    throw Error("edit " + describe({step.target, step.action}),
                fmt::format("a head whose scores no other edit changes: {} has {}", mechanism.id,
                            mechanism.score_edits == ScoreEdits::none
                                ? "no softmax of scores"
                                : "no score of every cell, only one scale for all of them"),
                fmt::format("\"{}\" in head {}", describe({unheard.target, unheard.action}), to_string(head)),
                "take one of the two out, or let them reach different heads or positions");
  }
}

void InterventionTap::swap(const Step& step, int layer, Tensor& pattern) {
  const Mechanism& mechanism = *step.swap->mechanism;
  const auto whole = heads_of_layer(q_, k_, v_, layer, scene_.dims.layers);
  for (int head = 0; head < scene_.dims.heads; ++head) {
    if (!step.target.reaches({layer, head})) continue;
    check_scores_heard(step, {layer, head});
    const Looks& looks = looks_[static_cast<std::size_t>(head)];
    RulePtr rule = looks.rule.rule;
    if (mechanism.score_edits != ScoreEdits::all) {
      // Who is seen is all it asks for, and one that runs along the text must not stumble over the mask of other rows.
      std::vector<RuleOfRows> parts;
      int first = 0;
      for (const HeldRows& part : held({layer, head})) {
        RulePtr seen = visible_rule(part, head, looks.usual);
        if (const auto* force = action<ForcePattern>(part, HeldKind::pattern)) seen = shaped(seen, force->shape);
        const bool other = mechanism.needs_causal && (part.end <= step.first || first > step.last);
        parts.push_back({part.end, other ? looks.usual : std::move(seen)});
        first = part.end;
      }
      rule = rule_by_rows(std::move(parts));
    }
    MechanismInput in = input_of_head(whole, head);
    in.scale = looks.rule.scale, in.rule = rule, in.temperature = looks.temperature, in.stop = scene_.stop;
    const MechanismResult result = mechanism.run(in, step.swap->values, Detail::weights);
    for (Index i = step.first; i <= step.last; ++i) {
      for (Index key = 0; key < result.weights.dim(1); ++key) pattern.ref(head, i, key) = result.weights.at(i, key);
      if (result.output_is_weights_times_v)
        outputs_.forget(head, i);
      else
        outputs_.keep(head, i, result.output);
    }
  }
}

}  // namespace headscope
