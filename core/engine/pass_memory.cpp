#include "core/engine/pass_memory.h"

#include <algorithm>
#include <utility>

namespace headscope {

namespace {
/// The enabled edits of a layer, in order.
std::vector<const Intervention*> edits_of(const std::vector<Intervention>& edits, int layer) {
  std::vector<const Intervention*> found;
  for (const Intervention& edit : edits)
    if (edit.enabled && edit.target.layer.value_or(layer) == layer) found.push_back(&edit);
  return found;
}
}  // namespace

int PassMemory::first_changed(const Model& model, const std::vector<std::int32_t>& ids,
                              const std::vector<Intervention>& edits) const {
  if (!trace_ || model_.lock().get() != &model || trace_->ids() != ids) return 0;
  const int layers = model.config().dims.layers;
  for (int layer = 0; layer < layers; ++layer) {
    const auto same = [](const Intervention* a, const Intervention* b) { return *a == *b; };
    if (!std::ranges::equal(edits_of(edits_, layer), edits_of(edits, layer), same)) return layer;
  }
  return layers;
}

void PassMemory::keep(std::shared_ptr<const Model> model, const RunRequest& request, std::shared_ptr<const Trace> trace,
                      std::vector<Tensor> residuals) {
  std::size_t bytes = 0;
  for (const Tensor& residual : residuals)
    if (residual.defined()) bytes += residual.bytes();
  if (bytes > most_bytes_) return forget();
  model_ = model;
  capture_ = request.capture;
  edits_ = request.edits;
  trace_ = std::move(trace);
  residuals_ = std::move(residuals);
}

void PassMemory::forget() {
  *this = PassMemory(most_bytes_);
}

}  // namespace headscope
