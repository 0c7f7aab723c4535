#include "core/analysis/mask_sweep.h"

#include "core/attention/masks.h"
#include "core/base/special_values.h"
#include "core/edits/mask_edit.h"
#include "core/run/mechanism_input.h"
#include "core/trace/layer_kinds.h"

namespace headscope {

std::shared_ptr<const AttentionRule> mask_on_text(const std::string& mask, const LoadedModel& loaded,
                                                  const RunRequest& request, HeadId head, const Ctx& ctx) {
  if (!hashes_vectors(mask) || !loaded.model->config().dims.attends(head.layer)) return parse_mask(mask);
  const MechanismInput in = head_input(loaded, request, head, Ctx{ctx.backend, nullptr, ctx.stop});
  const MaskVectors vectors{in.q, in.k};
  return parse_mask(mask, "mask", &vectors);
}

MaskFacts facts_on_text(const std::string& mask, const AttentionRule& rule, Index tokens) {
  MaskFacts facts = mask_facts(rule, tokens);
  if (hashes_vectors(mask)) facts.kept_keys = tokens;
  return facts;
}

MaskSavings MaskSavings::of(const ModelConfig& config) {
  return {config.dims, config.causal && config.dims.any_attends(), needed_numbers(config), needed_in_all(config)};
}

MaskSavings MaskSavings::of(const ModelInfo& info) {
  const bool keeps = info.objective == Objective::next_token && info.dims.any_attends();
  return {info.dims, keeps, kept_numbers(info.dims), kept_in_all(info.dims)};
}

double MaskSavings::work(const MaskFacts& facts, bool hashed) const {
  if (!dims.any_attends() || hashed) return nan;
  double all = 0;
  for (const LayerKind& kind : layer_kinds(dims))
    if (kind.mixer == Mixer::attention)
      all += facts.operations(kind.dims.d_head, kind.dims.value_width()) * dims.heads * kind.layers;
  return all;
}

double MaskSavings::cache_bytes(const MaskFacts& facts) const {
  if (!keeps_keys) return nan;
  return static_cast<double>(in_all) * 4 * static_cast<double>(facts.kept_keys);
}

MaskSweep::MaskSweep(LoadedModel loaded, MasksAsked asked) : loaded_(std::move(loaded)) {
  known_.asked = std::move(asked);
  known_.savings = MaskSavings::of(loaded_.model->config());
}

void MaskSweep::step(const Ctx& ctx) {
  if (!probe_) {
    EditProbe probe(loaded_, known_.asked.request, true, ctx);
    known_.before = probe.outcome(*probe.before());
    probe_ = std::move(probe);
    return;
  }
  const std::string& mask = known_.asked.masks[known_.entries.size()];
  const auto tokens = static_cast<Index>(probe_->before()->tokens.size());
  const auto rule = mask_on_text(mask, loaded_, known_.asked.request, known_.asked.head, ctx);
  known_.entries.push_back(
      {mask, facts_on_text(mask, *rule, tokens), hashes_vectors(mask), probe_->after({{{}, SetMask{mask}}}, ctx)});
}

std::shared_ptr<const MaskCosts> MaskSweep::result() const {
  return probe_ ? std::make_shared<const MaskCosts>(known_) : nullptr;
}

}  // namespace headscope
