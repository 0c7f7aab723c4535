#include "core/analysis/head_ablation.h"

#include <utility>

#include "core/trace/model_heads.h"

namespace headscope {

HeadAblationSweep::HeadAblationSweep(LoadedModel loaded, HeadAblationRequest request) : loaded_(std::move(loaded)) {
  known_.request = std::move(request);
}

EditProbe HeadAblationSweep::prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) {
  EditProbe probe(loaded_, known_.request.run, true, ctx);
  known_.answers = known_.request.answers ? *known_.request.answers : likely_answers(*probe.before());
  probe.know_sources({{{}, known_.request.ablate}}, ctx);  // reference texts are read once
  probe.set_answers(known_.answers);
  known_.before_trace = probe.before();
  known_.before = probe.outcome(*probe.before());
  for (const auto& [layer, head] : every_head(probe.dims(known_.request.stack)))
    cells.push_back({{{layer, head, {}, known_.request.stack}, known_.request.ablate}});
  known_.total = static_cast<int>(cells.size());
  return probe;
}

void HeadAblationSweep::measure(const EditProbe& probe, int, const std::vector<Intervention>& edits, const Ctx& ctx) {
  HeadAblation::Head head;
  const HeadTarget& out = edits.front().target;
  head.id = {out.layer.value(), out.head.value()};
  head.after = probe.after(edits, ctx);
  head.loss_change = head.after.loss - known_.before.loss;
  head.logit_difference_change = head.after.logit_difference - known_.before.logit_difference;
  known_.heads.push_back(head);
}

std::shared_ptr<const HeadAblation> HeadAblationSweep::result() const {
  return prepared() ? std::make_shared<const HeadAblation>(known_) : nullptr;
}

}  // namespace headscope
