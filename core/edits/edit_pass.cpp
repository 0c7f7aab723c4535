#include "core/edits/edit_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "core/attention/own_scores.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/weights.h"
#include "core/trace/mixer_words.h"

namespace headscope {

// ---- what a run needs of others

std::vector<SourceNeed> sources_of(const std::vector<Intervention>& edits) {
  std::vector<SourceNeed> needs;
  const auto need = [&](const std::string& text) -> CaptureSpec& {
    const auto found = std::ranges::find(needs, text, &SourceNeed::text);
    if (found != needs.end()) return found->capture;
    needs.push_back({text, {}});
    needs.back().capture.maps = MapStorage::none;
    needs.back().capture.all_logits = false;
    return needs.back().capture;
  };
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    for (const TakenFrom& taken : edit.action->takes()) {
      CaptureSpec& capture = need(taken.text);
      if (taken.site == SiteKind::pattern)
        capture.maps = MapStorage::automatic;
      else
        capture.sites.insert(taken.site);
    }
  }
  return needs;
}

bool reads_past_context(const std::vector<Intervention>& edits, const ModelConfig& model) {
  return !model.ends_at_context() && std::ranges::any_of(edits, [](const Intervention& edit) {
    return edit.enabled && edit.target == HeadTarget{} && edit.action->extends_context();
  });
}

const Trace& EditScene::source(const std::string& text) const {
  const auto found = sources.find(text);
  assert(found != sources.end());
  return *found->second;
}

// ---- steps

RulePtr EditStep::rule(int, RulePtr so_far, const AttentionRule*) const {
  return so_far;
}

int EditStep::first_row() const {
  return std::max(first() - pass().scene().first_row, 0);
}
int EditStep::last_row() const {
  return last() - pass().scene().first_row;
}

std::pair<Index, Index> EditStep::heads_of(const Tensor& value, int layer) const {
  if (!target().head) return {0, value.dim(1)};
  const Index heads = pass().scene().dims.heads_of(layer);
  if (*target().head >= heads) return {0, 0};
  const Index group = heads / value.dim(1), own = *target().head / group;
  return {own, own + 1};
}

void OwnOutputs::keep(Index head, Index query, const Tensor& output) {
  rows_.insert_or_assign({head, query}, output.select(0, query));
}

void OwnOutputs::put(Tensor& z) {
  for (const auto& [of, row] : rows_)
    for (Index j = 0; j < row.dim(0); ++j) z.ref(of.second, of.first, j) = row.at(j);
  rows_.clear();
}

EditPass::EditPass(const std::vector<Intervention>& edits, const EditScene& scene) : scene_(scene) {
  const int n = scene.rows();
  check_targets(edits, scene.dims, n, scene.keys());
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    const PositionRange at = edit.target.positions.value_or(PositionRange{});
    EditPlace place{*this, edit, from_end(at.first, n), from_end(at.last, n)};
    check(edit, place.where());
    if (scene.stack == Stack::cross)
      if (const std::string need = edit.action->needs_of_one_text(); !need.empty())
        throw Error(place.where(), need, "cross-attention, whose keys are of another text than its queries");
    const std::optional<int> layer = edit.target.layer;
    if (layer ? !scene.dims.attends(*layer) : !scene.dims.any_attends())
      if (const std::string need = edit.action->needs_of_softmax(); !need.empty())
        throw Error(place.where(), need,
                    layer && scene.dims.hybrid() ? fmt::format("layer {}, {}", *layer, mixer_words(scene.dims, *layer))
                                                 : mixer_words(scene.dims, 0),
                    "its weights α are what it amounts to; masks, weights and ablations act on them");
    steps_.push_back(edit.action->make(std::move(place)));
  }
}

const Model& EditPass::model(const std::string& where) const {
  if (!scene_.model)
    throw Error(where, "a pass of the model itself, whose positions and weights the edit reads", "none");
  return *scene_.model;
}

void EditPass::go_on() const {
  if (scene_.stop.stop_requested()) throw Cancelled();
}

SiteKind EditPass::meeting(bool keys) const {
  if (!scene_.model) return keys ? SiteKind::k : SiteKind::q;
  return meeting_site(scene_.model->config(), keys);
}

// ---- how a head looks

bool EditPass::reaches_layer(const EditStep& step, int layer) const {
  if (!step.target().reaches_layer(layer)) return false;
  return layer < 0 || scene_.dims.attends(layer) || !step.needs_softmax();
}

std::vector<HeldRows> EditPass::held(HeadId head) const {
  return held_rows(steps_, scene_.rows(), [&](const EditStep& step) {
    return step.target().reaches(head) && reaches_layer(step, head.layer);
  });
}

std::vector<HeldRows> EditPass::held_in_embeddings() const {
  return held_rows(steps_, scene_.rows(),
                   [](const EditStep& step) { return !step.target().layer && !step.target().head; });
}

RulePtr EditPass::fold(std::initializer_list<HeldKind> kinds, const HeldRows& rows, int head, RulePtr rule,
                       const AttentionRule* visible) const {
  for (const HeldKind kind : kinds)
    if (const EditStep* step = rows.of(kind)) rule = step->rule(head, std::move(rule), visible);
  return rule;
}

RulePtr EditPass::visible_rule(const HeldRows& rows, int head, RulePtr usual) const {
  return fold({HeldKind::mask, HeldKind::drop_first}, rows, head, std::move(usual), nullptr);
}

RulePtr EditPass::seen_rule(const HeldRows& rows, int head, RulePtr usual) const {
  const RulePtr visible = visible_rule(rows, head, std::move(usual));
  return fold({HeldKind::pattern}, rows, head, visible, visible.get());
}

namespace {
/// Kinds that change scores, in the order in which they do.
constexpr std::initializer_list<HeldKind> of_scores{HeldKind::positions, HeldKind::alibi_on_top, HeldKind::t5_on_top,
                                                    HeldKind::pattern, HeldKind::length};
}  // namespace

const EditStep* EditPass::score_edit(const HeldRows& rows) const {
  for (const HeldKind kind : of_scores)
    if (const EditStep* step = rows.of(kind); step && step->changes_scores()) return step;
  return nullptr;
}

double temperature_of(const HeldRows& rows) {
  const EditStep* set = rows.of(HeldKind::temperature);
  return set ? set->temperature() : 1;
}

HeadRule EditPass::head_rule(HeadId id, HeadRule usual) {
  const std::vector<HeldRows> parts = held(id);
  // One temperature for all rows goes into the scale where nothing is done to the scores: rules stay plain. Else it
  // divides what came of them, too.
  const bool own = usual.cap > 0 || usual.slope != 0 || usual.buckets || std::isfinite(usual.sink);
  const bool in_scale = std::ranges::all_of(parts, [&](const HeldRows& part) {
    return temperature_of(part) == temperature_of(parts.front()) && !score_edit(part) && !own;
  });
  std::vector<RuleOfRows> rules;
  int begin = 0;
  for (const HeldRows& part : parts) {
    if (usual.distances && part.of(HeldKind::positions)) usual.without_distances.push_back({begin, part.end});
    begin = part.end;
    const RulePtr visible = visible_rule(part, id.head, usual.rule);
    RulePtr rule =
        fold(of_scores, part, id.head, own_scores(visible, usual, !part.of(HeldKind::positions)), visible.get());
    if (const double tau = temperature_of(part); tau != 1 && !in_scale)
      rule = scaled_rule(
          std::move(rule), [tau](Index) { return static_cast<float>(1 / tau); }, fmt::format("temperature {}", tau));
    rules.push_back({part.end, std::move(rule)});
  }
  looks_.resize(static_cast<std::size_t>(scene_.dims.most_heads()));
  Looks& looks = nth(looks_, id.head);
  looks.usual = usual.rule;
  const double tau = in_scale ? temperature_of(parts.front()) : 1;
  looks.temperature = static_cast<float>(tau);
  if (tau != 1) usual.scale = static_cast<float>(static_cast<double>(usual.scale) / tau);
  usual.rule = rule_by_rows(std::move(rules));
  usual.cap = 0, usual.slope = 0, usual.sink = HeadRule{}.sink, usual.buckets = nullptr;  // the rule does it
  looks.rule = usual;
  return usual;
}

}  // namespace headscope
