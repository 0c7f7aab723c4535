#pragma once
// Rows of a text that stand as they are when it goes on, or changes further back: where no token looks ahead, nothing
// before the first changed one depends on it. The next pass reads the rest alone, from a cache of keys, values and
// queries (core/model/kv_cache.h); attention weights are drawn for all rows, since every row's map is recorded, and
// all else is taken over.

#include <memory>
#include <span>
#include <vector>

#include "core/edits/intervention.h"
#include "core/model/model.h"
#include "core/trace/trace.h"

namespace headscope {

/// Whether a pass with these edits can be gone on from: of a decoder with attention, on this machine, when no edit
/// looks ahead or touches scores or weights of all rows.
bool can_go_on(const Model& model, const std::vector<Intervention>& edits, const Tap& carried_out, int tokens,
               const Backend& backend);
/// A cache for a text of so many tokens, with room for some more; null where it would take more than `most_bytes`.
std::shared_ptr<KvCache> cache_for(const ModelConfig& config, int tokens, std::size_t most_bytes);

/// The first `known` rows of `before`, then those of `fresh`. `before` undefined, or known 0: `fresh` itself.
Tensor with_rows_before(const Tensor& before, Index known, const Tensor& fresh);
/// Puts the first `known` rows of the last trace's sites, and of its logits where it has all, before those of a pass
/// over the rest.
void put_rows_before(Trace& trace, const Trace& last, Index known);

}  // namespace headscope
