#include "core/analysis/head_circuit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/ablate_edit.h"
#include "core/trace/model_heads.h"

namespace headscope {

namespace {
constexpr double least_of_heads = 1e-4;
constexpr double large_share = 0.5;  // of the answer, without heads: too much to ask which of them are enough

/// Of the whole model's logit difference, what is there without heads.
double share_without(double none, double whole) {
  return whole == 0 ? std::numeric_limits<double>::infinity() : none / whole;
}
}  // namespace

double HeadCircuit::faithfulness(double logit_difference) const {
  return (logit_difference - none) / (whole - none);
}

double HeadCircuit::faithfulness_of(int kept) const {
  if (kept == heads) return 1;
  if (kept == 0) return 0;
  const bool removing = request.method == HeadCircuitRequest::Method::remove;
  const auto step = static_cast<std::size_t>(removing ? heads - kept - 1 : kept - 1);
  return step < order.size() ? faithfulness(order[step].logit_difference) : std::numeric_limits<double>::quiet_NaN();
}

std::set<HeadId> HeadCircuit::kept(int kept) const {
  std::set<HeadId> set;
  if (kept == 0) return set;
  const ModelDims& dims = before_trace->model.dims;
  const bool removing = request.method == HeadCircuitRequest::Method::remove;
  const bool all = kept == heads;  // known without a step, as none is, whichever way the search goes
  if (removing || all)
    for (const HeadId head : every_head(dims)) set.insert(head);
  const int steps = all ? 0 : removing ? heads - kept : kept;
  for (int i = 0; i < steps; ++i) {
    const Step& step = nth(order, i);
    if (removing)
      set.erase(step.id);
    else
      set.insert(step.id);
  }
  return set;
}

int HeadCircuit::fewest(double threshold) const {
  for (int count = 0; count <= heads; ++count)
    if (faithfulness_of(count) >= threshold) return count;
  return -1;
}

std::vector<std::string> HeadCircuit::caveats(double threshold) const {
  std::vector<std::string> out;
  const double share = share_without(none, whole);
  if (share > 1)
    return {
        say("With every head out the logit difference is {:.2f}, beyond the whole model's {:.2f}: what stands in "
            "for the heads answers by itself, and a percentage of what the heads add says nothing about which "
            "of them matter. Let a head that is out become something else, or choose other answers.",
            none, whole)};
  if (share >= large_share)
    out.push_back(
        say("With every head out {:.0f} % of the logit difference is there already; the percentage is "
            "of the rest, {:.2f} of {:.2f}.",
            100 * share, whole - none, whole));
  if (const int count = fewest(threshold); count >= 0 && faithfulness_of(count) > 1.005)
    out.push_back(
        say("This set keeps {:.1f} %, more than all heads together: among those left out are heads that "
            "work against the answer.",
            100 * faithfulness_of(count)));
  return out;
}

HeadCircuitSearch::HeadCircuitSearch(LoadedModel loaded, HeadCircuitRequest request) : loaded_(std::move(loaded)) {
  known_.request = std::move(request);
}

std::vector<Intervention> HeadCircuitSearch::without(const std::vector<HeadId>& heads) const {
  std::vector<Intervention> edits;
  for (const auto& [layer, head] : heads) edits.push_back({{layer, head, {}, known_.request.stack}, known_.ablate});
  return edits;
}

void HeadCircuitSearch::prepare(const Ctx& ctx) {
  EditProbe probe(loaded_, known_.request.run, false, ctx);
  known_.before_trace = probe.before();
  known_.answers = known_.request.answers ? *known_.request.answers : likely_answers(*probe.before());
  std::vector<Ablate> tried{
      {Ablate::By::mean}, {Ablate::By::zero}, {Ablate::By::mean, 1, true}, {Ablate::By::resample}};
  if (known_.request.ablate) tried = {*known_.request.ablate};
  std::vector<Intervention> everywhere;
  for (const Ablate& each : tried) everywhere.push_back({{.stack = known_.request.stack}, each});
  probe.know_sources(everywhere, ctx);  // reference texts are read once
  probe.set_answers(known_.answers);
  known_.whole = probe.outcome(*probe.before()).logit_difference;
  const std::vector<HeadId> all = every_head(probe.dims(known_.request.stack));
  for (const Ablate& each : tried) {
    known_.ablate = each;
    known_.baselines.emplace_back(each, probe.after(without(all), ctx).logit_difference);
    if (share_without(known_.baselines.back().second, known_.whole) < large_share) break;
  }
  std::tie(known_.ablate, known_.none) = *std::ranges::min_element(
      known_.baselines, {}, [&](const auto& b) { return share_without(b.second, known_.whole); });
  if (std::abs(known_.whole - known_.none) < least_of_heads)
    throw Error("answers", "two tokens between which the heads decide",
                fmt::format("a logit difference of {:.4f} with all heads, {:.4f} with none", known_.whole, known_.none),
                "choose other answers, or a text whose answer lies in it");
  known_.heads = static_cast<int>(all.size());
  left_ = all;
  if (known_.request.method == HeadCircuitRequest::Method::add) out_ = all;
  probe.move_to(without(out_), ctx);
  probe_ = std::move(probe);
}

void HeadCircuitSearch::step(const Ctx& ctx) {
  if (!probe_) return prepare(ctx);
  const bool removing = known_.request.method == HeadCircuitRequest::Method::remove;
  if (next_ < left_.size()) {
    const HeadId trial = left_[next_];
    std::vector<HeadId> out = out_;
    if (removing)
      out.push_back(trial);
    else
      std::erase(out, trial);
    const double difference = probe_->after(without(out), ctx).logit_difference;
    const auto from_whole = [&](double d) { return std::abs(d - known_.whole); };
    if (!best_ || from_whole(difference) < from_whole(best_->second)) best_ = {trial, difference};
    ++next_;
    ++tried_;
  }
  if (next_ < left_.size()) return;
  // Nothing is decided before the pass that the next round builds on has come through: it may be stopped.
  std::vector<HeadId> out = out_;
  if (removing)
    out.push_back(best_->first);
  else
    std::erase(out, best_->first);
  probe_->move_to(without(out), ctx);
  out_ = std::move(out);
  known_.order.push_back({best_->first, best_->second});
  std::erase(left_, best_->first);
  best_.reset();
  next_ = 0;
}

std::shared_ptr<const HeadCircuit> HeadCircuitSearch::result() const {
  return probe_ ? std::make_shared<const HeadCircuit>(known_) : nullptr;
}

}  // namespace headscope
