#include "core/analysis/temperature_sweep.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/temperature_edit.h"
#include "core/metrics/metric.h"
#include "core/trace/model_heads.h"

namespace headscope {

std::vector<TemperatureSweep::Point> TemperatureSweep::mean() const {
  std::vector<Point> sum(request.taus.size());
  double count = 0;
  for (const auto& curve : heads) {
    if (curve.size() != sum.size()) continue;
    ++count;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i].entropy += curve[i].entropy;
      sum[i].loss += curve[i].loss;
      sum[i].kl += curve[i].kl;
    }
  }
  if (count == 0) return {};
  for (Point& point : sum) point.entropy /= count, point.loss /= count, point.kl /= count;
  return sum;
}

TemperatureSweeper::TemperatureSweeper(LoadedModel loaded, TemperatureSweepRequest request)
    : loaded_(std::move(loaded)) {
  if (request.taus.empty()) throw Error("temperatures", "at least one", "none");
  for (const double tau : request.taus) check(EditAction(SetTemperature{tau}), "temperatures");
  known_.request = std::move(request);
}

EditProbe TemperatureSweeper::prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) {
  EditProbe probe(loaded_, known_.request.run, true, ctx);
  known_.before_trace = probe.before();
  known_.loss_before = probe.outcome(*probe.before()).loss;
  const Stack stack = known_.request.stack;
  const ModelDims& dims = probe.dims(stack);
  for (const double tau : known_.request.taus) cells.push_back({{{.stack = stack}, SetTemperature{tau}}});
  for (int layer = 0; layer < dims.layers; ++layer)
    for (int head = 0; head < dims.heads && dims.attends(layer); ++head)
      for (const double tau : known_.request.taus) cells.push_back({{{layer, head, {}, stack}, SetTemperature{tau}}});
  known_.heads.resize(static_cast<std::size_t>(dims.all_heads()));
  known_.total = static_cast<int>(cells.size());
  return probe;
}

void TemperatureSweeper::measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits,
                                 const Ctx& ctx) {
  const HeadTarget& target = edits.front().target;
  std::set<int> layers;
  if (target.layer)
    layers = {*target.layer};
  else
    for (int layer = 0; layer < probe.dims(target.stack).layers; ++layer) layers.insert(layer);
  const auto trace = probe.run(edits, ctx, layers);
  const Outcome outcome = probe.outcome(*trace);
  const std::vector<double> entropy = evaluate(metric("entropy"), *trace->part(target.stack));
  TemperatureSweep::Point point{0, outcome.loss, outcome.kl};
  if (target.head) {
    point.entropy = nth(entropy, *target.head);
  } else {
    double sum = 0, count = 0;
    for (const double each : entropy)  // heads of a layer that does not attend have none
      if (!std::isnan(each)) sum += each, ++count;
    point.entropy = sum / count;
  }
  const auto taus = static_cast<int>(known_.request.taus.size());
  if (index < taus)
    known_.all.push_back(point);
  else
    nth(known_.heads, head_index(probe.dims(target.stack), {*target.layer, *target.head})).push_back(point);
}

std::shared_ptr<const TemperatureSweep> TemperatureSweeper::result() const {
  return prepared() ? std::make_shared<const TemperatureSweep>(known_) : nullptr;
}

}  // namespace headscope
