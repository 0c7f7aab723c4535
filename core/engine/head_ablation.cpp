#include "core/engine/head_ablation.h"

#include <utility>

namespace headscope {

HeadAblationSweep::HeadAblationSweep(LoadedModel loaded, HeadAblationRequest request) : loaded_(std::move(loaded)) {
  known_.request = std::move(request);
}

void HeadAblationSweep::step(const Ctx& ctx) {
  if (!probe_) {
    EditProbe probe(loaded_, known_.request.run, true, ctx);
    known_.answers = known_.request.answers ? *known_.request.answers : likely_answers(*probe.before());
    probe.set_answers(known_.answers);
    known_.before_trace = probe.before();
    known_.before = probe.outcome(*probe.before());
    known_.total = probe.layers() * probe.heads();
    probe_ = std::move(probe);
    return;
  }
  HeadAblation::Head head;
  head.layer = done() / probe_->heads();
  head.head = done() % probe_->heads();
  head.after = probe_->after({{{head.layer, head.head}, known_.request.ablate}}, ctx);
  head.loss_change = head.after.loss - known_.before.loss;
  head.logit_difference_change = head.after.logit_difference - known_.before.logit_difference;
  known_.heads.push_back(head);
}

int HeadAblationSweep::done() const {
  return static_cast<int>(known_.heads.size());
}

int HeadAblationSweep::total() const {
  return known_.total;
}

bool HeadAblationSweep::finished() const {
  return probe_ && done() == total();
}

double HeadAblationSweep::share() const {
  if (!probe_) return 0;
  const int layers = probe_->layers(), heads = probe_->heads();
  double all = 0, computed = 0;
  for (int i = 0; i < total(); ++i) {
    const double blocks = layers - i / heads;
    all += blocks;
    if (i < done()) computed += blocks;
  }
  return computed / all;
}

std::shared_ptr<const HeadAblation> HeadAblationSweep::result() const {
  return probe_ ? std::make_shared<const HeadAblation>(known_) : nullptr;
}

}  // namespace headscope
