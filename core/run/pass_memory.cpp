#include "core/run/pass_memory.h"

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

/// What a pass is computed from.
bool same_text(std::span<const Token> a, std::span<const Token> b) {
  return std::ranges::equal(a, b,
                            [](const Token& x, const Token& y) { return x.id == y.id && x.segment == y.segment; });
}
}  // namespace

int PassMemory::first_changed(const Model& model, std::span<const Token> tokens, const std::vector<Intervention>& edits,
                              const Tensor& patches) const {
  if (!trace_ || model_.lock().get() != &model || !same_text(trace_->tokens, tokens)) return 0;
  if (patches.defined() && !std::ranges::equal(trace_->patches.values(), patches.values())) return 0;
  const int layers = model.config().dims.layers;
  for (int layer = 0; layer < layers; ++layer) {
    const auto same = [](const Intervention* a, const Intervention* b) { return *a == *b; };
    if (!std::ranges::equal(edits_of(request_.edits, layer), edits_of(edits, layer), same)) return layer;
  }
  return layers;
}

std::shared_ptr<const Trace> PassMemory::source(const Model& model, const RunRequest& request, const SourceNeed& need,
                                                std::span<const Token> tokens) const {
  const auto found = kept_.sources.find(need.text);
  if (found == kept_.sources.end() || model_.lock().get() != &model) return nullptr;
  if (!request.image.empty()) return nullptr;  // tokens of pictures are always the same
  const bool same_tokens = need.text.empty()
                               ? same_text(found->second->tokens, tokens)
                               : request.add_bos == request_.add_bos && request.too_long == request_.too_long &&
                                     request.parse_special == request_.parse_special;
  // The need of last time is not stored but made again from its edits.
  const auto before = sources_of(request_.edits);
  const auto recorded = std::ranges::find(before, need.text, &SourceNeed::text);
  return same_tokens && recorded != before.end() && recorded->capture == need.capture ? found->second : nullptr;
}

void PassMemory::keep(std::shared_ptr<const Model> model, const RunRequest& request, std::shared_ptr<const Trace> trace,
                      Kept kept) {
  std::size_t bytes = 0;
  for (const Tensor& residual : kept.residuals)
    if (residual.defined()) bytes += residual.bytes();
  if (bytes > most_bytes_) return forget();
  model_ = model;
  request_ = request;
  trace_ = std::move(trace);
  kept_ = std::move(kept);
}

void PassMemory::forget() {
  *this = PassMemory(most_bytes_);
}

}  // namespace headscope
