#include "core/run/known_rows.h"

#include <algorithm>

#include "core/trace/layer_kinds.h"

namespace headscope {

bool can_go_on(const Model& model, const std::vector<Intervention>& edits, const CaptureSpec& recorded,
               const Tap& carried_out, int tokens, const Backend& backend) {
  const ModelConfig& c = model.config();
  if (!c.causal || c.cross() || c.vision || backend.asynchronous()) return false;
  if (recorded.sites.contains(SiteKind::attn_scores) || recorded.sites.contains(SiteKind::pattern)) return false;
  const int longest = std::max(tokens, c.context);
  if (std::ranges::any_of(edits, [&](const Intervention& edit) { return looks_ahead(edit, longest); })) return false;
  for (int layer = 0; layer < c.dims.layers; ++layer)  // these hold rows that are drawn anew
    if (carried_out.wants({SiteKind::attn_scores, layer}) || carried_out.wants({SiteKind::pattern, layer}))
      return false;
  return true;
}

namespace {
/// Tokens that a cache for a text of so many has room for: a few more, so that not every word asks for new storage.
int room_for(int tokens) {
  return tokens + tokens / 4 + 32;
}
}  // namespace

bool can_hold(const ModelConfig& config, int tokens, std::size_t most_bytes) {
  std::size_t of_token = 0, fixed = 0;
  for (const LayerKind& kind : layer_kinds(config.dims)) {
    const ModelDims& d = kind.dims;
    std::size_t own = kept_numbers(d).numbers;
    if (kind.mixer == Mixer::attention)  // queries too, and keys stand there twice, as they are and in panels
      own += static_cast<std::size_t>(d.heads + d.kv_heads) * static_cast<std::size_t>(d.d_head);
    else  // C, of which maps are made
      own += static_cast<std::size_t>(d.state_groups) * static_cast<std::size_t>(d.d_state);
    if (kind.mixer != Mixer::attention && d.state_kind != StateKind::convolution)  // two states
      fixed += static_cast<std::size_t>(2 * kind.layers) * static_cast<std::size_t>(d.d_inner) *
               static_cast<std::size_t>(d.d_state);
    of_token += own * static_cast<std::size_t>(kind.layers);
  }
  return sizeof(float) * (of_token * static_cast<std::size_t>(room_for(tokens)) + fixed) <= most_bytes;
}

std::shared_ptr<TextCache> cache_for(const ModelConfig& config, int tokens, std::size_t most_bytes) {
  if (!can_hold(config, tokens, most_bytes)) return nullptr;
  return std::make_shared<TextCache>(KvCache(config.dims, room_for(tokens), true));
}

void go_back(TextCache& cache, int known, int tokens) {
  cache.keys.truncate(known);
  if (tokens > cache.keys.capacity()) cache.keys.reserve(room_for(tokens));
}

void put_rows_before(Trace& trace, std::span<Tensor> residuals, const Trace& last,
                     std::span<const Tensor> last_residuals, Index known, bool all_logits, TextCache& cache,
                     Backend& backend) {
  const auto put = [&](GrowingRows& rows, const Tensor& before, Tensor& fresh) {
    if (!rows.are(before)) rows = GrowingRows(before.packed(), before.dim(0));
    fresh = rows.put(known, fresh, cache.keys.capacity(), backend);
  };
  // How many the last pass left does not tell what was asked for: of a text of one token the last row is all there are.
  all_logits = all_logits && last.logits.defined();
  for (auto& [site, value] : trace.sites) put(cache.sites[site], last.sites.at(site), value);
  if (all_logits && trace.sites.contains({SiteKind::logits}))
    trace.logits = trace.sites.at({SiteKind::logits});
  else if (all_logits)
    put(cache.sites[{SiteKind::logits}], last.logits, trace.logits);
  for (std::size_t i = 0; i < residuals.size(); ++i)
    if (residuals[i].defined()) put(cache.residuals[static_cast<int>(i)], last_residuals[i], residuals[i]);
}

}  // namespace headscope
