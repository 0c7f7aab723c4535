#include "core/run/pass_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headscope {

namespace {
/// The enabled edits of a layer, in order; of an encoder-decoder those of the decoder's, cross-attention included.
std::vector<const Intervention*> edits_in(const std::vector<Intervention>& edits, const Model& model, int layer) {
  std::vector<const Intervention*> found;
  for (const Intervention& edit : edits)
    if (edit.enabled && edit.target.layer.value_or(layer) == layer &&
        !(model.encoder() && edit.target.stack == Stack::encoder))
      found.push_back(&edit);
  return found;
}

/// Bit for bit, or neither is there.
bool same(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  const Tensor x = a.packed(), y = b.packed();
  return x.shape() == y.shape() && std::memcmp(x.data(), y.data(), x.bytes()) == 0;
}

/// What a pass is computed from.
bool same_token(const Token& a, const Token& b) {
  return a.id == b.id && a.segment == b.segment;
}
bool same_text(std::span<const Token> a, std::span<const Token> b) {
  return std::ranges::equal(a, b, same_token);
}
}  // namespace

int PassMemory::first_changed(const Model& model, std::span<const Token> tokens, const std::vector<Intervention>& edits,
                              const Tensor& beside) const {
  if (!trace_ || model_.lock().get() != &model || !same_text(trace_->tokens, tokens)) return 0;
  if (!same(kept_.beside, beside)) return 0;
  const int layers = model.config().dims.layers;
  for (int layer = 0; layer < layers; ++layer) {
    const auto equal = [](const Intervention* a, const Intervention* b) { return *a == *b; };
    if (!std::ranges::equal(edits_in(request_.edits, model, layer), edits_in(edits, model, layer), equal)) return layer;
  }
  return layers;
}

bool PassMemory::read(const Model& model, std::span<const Token> tokens) const {
  return trace_ && model_.lock().get() == &model && same_text(trace_->tokens, tokens);
}

int PassMemory::rows_known(const Model& model, std::span<const Token> tokens, const RunRequest& request) const {
  if (!kept_.cache || model_.lock().get() != &model || request_.capture != request.capture) return 0;
  const auto enabled = [](const std::vector<Intervention>& all) {
    std::vector<const Intervention*> found;
    for (const Intervention& edit : all)
      if (edit.enabled) found.push_back(&edit);
    return found;
  };
  const auto equal = [](const Intervention* a, const Intervention* b) { return *a == *b; };
  if (!std::ranges::equal(enabled(request_.edits), enabled(request.edits), equal)) return 0;
  // That such edits can be gone on with the cache vouches for (can_go_on()), but for how long the text is.
  const int longest = std::max(static_cast<int>(tokens.size()), model.config().context);
  if (std::ranges::any_of(request.edits, [&](const Intervention& edit) { return looks_ahead(edit, longest); }))
    return 0;
  const int count = static_cast<int>(tokens.size());
  if (count > kept_.cache->keys.capacity() && !can_hold(model.config(), count, most_bytes_)) return 0;
  if (!model.continues(kept_.cache->keys, static_cast<Index>(tokens.size()))) return 0;
  const auto common = std::ranges::mismatch(trace_->tokens, tokens, same_token).in2 - tokens.begin();
  return static_cast<int>(std::min({static_cast<Index>(common), static_cast<Index>(tokens.size()) - 1,
                                    static_cast<Index>(kept_.cache->keys.length())}));
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
  // An edit of an encoder-decoder takes from another source, read beside the same target.
  if (model.encoder() && (request.source != request_.source || request.sound != request_.sound ||
                          request.source_ids != request_.source_ids || !same_text(found->second->tokens, tokens)))
    return nullptr;
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
