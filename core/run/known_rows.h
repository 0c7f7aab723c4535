#pragma once
// Rows of a text that stand as they are when it goes on, or changes further back: where no token looks ahead, nothing
// before the first changed one depends on it. The next pass reads the rest alone, from a cache of keys, values and
// queries, or of states (core/model/kv_cache.h); attention weights are drawn for all rows, since every row's map is
// recorded, and all else is taken over, maps of states too.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/edits/intervention.h"
#include "core/model/model.h"
#include "core/tensor/growing_rows.h"
#include "core/trace/trace.h"

namespace headscope {

/// Whether a pass with these edits can be gone on from: of a decoder, on this machine, when no edit looks ahead, and
/// neither an edit nor what is recorded touches scores or weights of all rows.
bool can_go_on(const Model& model, const std::vector<Intervention>& edits, const CaptureSpec& recorded,
               const Tap& carried_out, int tokens, const Backend& backend);
/// What a text that goes on is read behind.
struct TextCache {
  KvCache keys;  ///< with values and queries
  std::map<int, GrowingRows> residuals = {};
  std::map<Site, GrowingRows> sites = {};  ///< those that were recorded
};
/// Whether the keys, values and queries, and of layers with states what they keep, of a text of so many tokens, with
/// room for some more, take no more than that.
bool can_hold(const ModelConfig& config, int tokens, std::size_t most_bytes);
/// Of a text of so many tokens, with room for some more; null where it would take more than `most_bytes`.
std::shared_ptr<TextCache> cache_for(const ModelConfig& config, int tokens, std::size_t most_bytes);
/// Goes back to the first `known` tokens, for a text of `tokens`.
void go_back(TextCache& cache, int known, int tokens);

/// Puts the first `known` rows of what the last pass left, sites and residual streams, by layer, and `all_logits`,
/// where both passes were asked for those, before those of a pass over the rest.
void put_rows_before(Trace& trace, std::span<Tensor> residuals, const Trace& last,
                     std::span<const Tensor> last_residuals, Index known, bool all_logits, TextCache& cache,
                     Backend& backend);

}  // namespace headscope
