#include "core/run/known_rows.h"

#include <algorithm>
#include <cstring>

namespace headscope {

bool can_go_on(const Model& model, const std::vector<Intervention>& edits, const Tap& carried_out, int tokens,
               const Backend& backend) {
  const ModelConfig& c = model.config();
  if (!c.causal || c.state_space || c.cross() || c.vision || backend.asynchronous()) return false;
  const int longest = std::max(tokens, c.context);
  if (std::ranges::any_of(edits, [&](const Intervention& edit) { return looks_ahead(edit, longest); })) return false;
  for (int layer = 0; layer < c.dims.layers; ++layer)  // these hold rows that are drawn anew
    if (carried_out.wants({SiteKind::attn_scores, layer}) || carried_out.wants({SiteKind::pattern, layer}))
      return false;
  return true;
}

std::shared_ptr<KvCache> cache_for(const ModelConfig& config, int tokens, std::size_t most_bytes) {
  const ModelDims& d = config.dims;
  const int capacity = tokens + tokens / 4 + 32;
  const std::size_t numbers =
      kept_numbers(d).numbers + static_cast<std::size_t>(d.heads) * static_cast<std::size_t>(d.d_head);
  if (sizeof(float) * numbers * static_cast<std::size_t>(capacity) * static_cast<std::size_t>(d.layers) > most_bytes)
    return nullptr;
  return std::make_shared<KvCache>(d, capacity, true);
}

Tensor with_rows_before(const Tensor& before, Index known, const Tensor& fresh) {
  if (known == 0 || !before.defined()) return fresh;
  Shape shape = fresh.shape();
  shape[0] += known;
  Tensor both = Tensor::uninitialized(shape);
  const Tensor parts[] = {before.slice(0, 0, known).packed(), fresh.packed()};
  float* to = both.mutable_data();
  for (const Tensor& part : parts) {
    std::memcpy(to, part.data(), part.bytes());
    to += part.size();
  }
  return both;
}

void put_rows_before(Trace& trace, const Trace& last, Index known) {
  const bool all_logits = last.logits.defined() && last.logits.dim(0) == static_cast<Index>(last.tokens.size());
  for (auto& [site, value] : trace.sites)
    if (site.kind != SiteKind::logits || all_logits) value = with_rows_before(last.sites.at(site), known, value);
  if (all_logits) trace.logits = with_rows_before(last.logits, known, trace.logits);
}

}  // namespace headscope
